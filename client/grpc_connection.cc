// The nodes, the routing to them, and when the topology is asked for again.
#include "client/grpc_connection.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "client/peer.h"
#include "client/routing.h"
#include "client/timer.h"

namespace gyre {
inline namespace sdk {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kEndBound{1000};  // waited for gRPC to let go of streams
constexpr milliseconds kEndBoundLate{60000};
constexpr milliseconds kRefreshPause{250};   // between two refreshes
constexpr milliseconds kUnwellAgeMax{3000};  // of a topology that shows a node that is not up
constexpr milliseconds kAvoidFirst{1000};    // a node that failed, doubled with each further failure
constexpr milliseconds kAvoidMax{8000};
constexpr size_t kAsked = 4;  // nodes asked for a topology before giving up until the next cause
constexpr size_t kPeersMax = 2 * Ring::kMembersMax;

class GrpcConnection final : public Connection,
                             public PeerHost,
                             public std::enable_shared_from_this<GrpcConnection> {
 public:
  explicit GrpcConnection(GrpcConnectionOptions options)
      : options_(std::move(options)),
        timer_(std::make_shared<Timer>()),
        running_(std::make_shared<Running>()) {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    random_.seed(seed);
  }

  ~GrpcConnection() override {
    // Channels must not die on gRPC's own threads, and only an idle connection is certain of that. Where it
    // is not idle, a thread of its own waits.
    if (running_->Wait(milliseconds(0))) return;
    std::thread([peers = std::move(peers_), running = running_] { running->Wait(kEndBoundLate); }).detach();
  }

  void Shutdown() override {
    std::vector<std::shared_ptr<Peer>> peers;
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      peers = peers_;
    }
    for (const std::shared_ptr<Peer>& peer : peers) peer->Shutdown();
    timer_->Stop();
    // On one of gRPC's own threads the wait would be for itself.
    if (!Cork::Active()) running_->Wait(kEndBound);
  }

  void AddEndpoints() {
    const std::lock_guard lock(mutex_);
    for (const std::string& endpoint : options_.endpoints) {
      if (const std::optional<PeerId> id = Intern(endpoint)) endpoints_.push_back(*id);
    }
  }

  std::optional<PeerId> Pick(std::string_view keyspace, std::string_view key,
                             std::span<const PeerId> avoid) override {
    std::optional<PeerId> peer;
    bool stale = false;
    {
      const std::lock_guard lock(mutex_);
      const TimePoint now = Clock::now();
      if (routing_) {
        peer = routing_->Pick(keyspace, key, now, avoid_until_, avoid);
        stale = now - topology_at_ > (all_up_ ? options_.topology_age_max : kUnwellAgeMax);
      }
      if (!peer) peer = PickAny(endpoints_, now, avoid_until_, avoid);
    }
    if (stale) Refresh(std::nullopt);
    return peer;
  }

  void Send(PeerId peer, std::shared_ptr<Exchange> exchange, SendOptions options) override {
    PeerOf(peer)->Send(std::move(exchange), options);
  }

  std::string AddressOf(PeerId peer) override { return PeerOf(peer)->address(); }
  TimePoint Now() override { return Clock::now(); }
  void RunAt(TimePoint time, std::function<void(Wake)> task) override {
    timer_->RunAt(time, [task = std::move(task)](Wake wake) {
      const Cork cork;
      task(wake);
    });
  }
  uint64_t Random() override {
    const std::lock_guard lock(random_mutex_);
    return random_();
  }

  void OnTopology(const v1::Topology& topology) override;
  void OnEpoch(PeerId peer, uint64_t layout_epoch) override {
    // Without a topology there is nothing to be older; 0 means that the reply did not say.
    const uint64_t known = epoch_.load(std::memory_order_relaxed);
    if (known != 0 && layout_epoch > known) Refresh(peer);
  }
  void OnWell(PeerId peer) override {
    const std::lock_guard lock(mutex_);
    avoid_until_[peer] = TimePoint();
  }
  void OnTrouble(PeerId peer, int failures) override {
    {
      const std::lock_guard lock(mutex_);
      avoid_until_[peer] = Clock::now() + std::min(kAvoidMax, kAvoidFirst * (1 << std::min(failures - 1, 4)));
      if (!routing_) return;  // the call that met the trouble asks the next endpoint by itself
    }
    Refresh(std::nullopt);
  }

 private:
  std::shared_ptr<Peer> PeerOf(PeerId id) {
    const std::lock_guard lock(mutex_);
    assert(id < peers_.size());
    return peers_[id];
  }

  // REQUIRES: mutex_ is held. nullopt when there are too many, and after Shutdown.
  std::optional<PeerId> Intern(const std::string& address) {
    if (const auto known = ids_.find(address); known != ids_.end()) return known->second;
    if (ended_ || peers_.size() >= kPeersMax) return std::nullopt;
    const PeerId id = static_cast<PeerId>(peers_.size());
    peers_.push_back(std::make_shared<Peer>(id, address,
                                            Peer::Environment{.host = weak_from_this(),
                                                              .timer = timer_,
                                                              .running = running_,
                                                              .connect_timeout = options_.connect_timeout,
                                                              .credentials = options_.credentials}));
    avoid_until_.push_back(TimePoint());
    ids_.emplace(address, id);
    return id;
  }

  // Asks for a topology, `first` first; soon if one was asked for only just now.
  void Refresh(std::optional<PeerId> first);
  void RefreshLater(TimePoint time);
  // Asks the last of `asked`, and if that fails the one before it.
  void AskNext(std::vector<std::shared_ptr<Peer>> asked);
  void RefreshDone();

  const GrpcConnectionOptions options_;
  const std::shared_ptr<Timer> timer_;
  const std::shared_ptr<Running> running_;
  std::atomic<uint64_t> epoch_{0};  // of routing_; 0: none

  std::mutex mutex_;                          // guards what follows
  std::vector<std::shared_ptr<Peer>> peers_;  // by PeerId
  std::vector<TimePoint> avoid_until_;        // by PeerId
  std::map<std::string, PeerId> ids_;         // by address
  std::vector<PeerId> endpoints_;
  std::optional<Routing> routing_;
  std::vector<PeerId> members_;  // of routing_
  TimePoint topology_at_;
  bool all_up_ = true;
  bool ended_ = false;
  bool refreshing_ = false;
  bool refresh_planned_ = false;
  TimePoint refresh_after_;

  std::mutex random_mutex_;
  std::mt19937_64 random_;  // guarded by random_mutex_
};

void GrpcConnection::OnTopology(const v1::Topology& topology) {
  if (topology.cluster_id() == 0) return;  // not formed: there is nothing to place keys by
  Routing::Input input{.epoch = topology.layout_epoch(), .nodes = {}, .replicas = {}};
  for (const v1::Keyspace& keyspace : topology.keyspaces()) input.replicas[keyspace.name()] = keyspace.n();
  const std::lock_guard lock(mutex_);
  if (routing_ && topology.layout_epoch() < routing_->epoch()) return;  // from a node that is behind
  std::vector<PeerId> members;
  bool all_up = true;
  for (const v1::Node& wire : topology.nodes()) {
    Routing::Node node{.member = {.id = {}, .zone = wire.zone(), .weight = wire.weight(), .tokens = {}},
                       .peer = kNoPeer,
                       .state = Routing::State::kUp};
    if (!wire.member() || !ParseNodeId(wire.id(), node.member.id)) continue;
    for (const uint64_t token : wire.tokens()) node.member.tokens.push_back(Token{token});
    if (!wire.address().empty()) node.peer = Intern(wire.address()).value_or(kNoPeer);
    if (node.peer != kNoPeer) members.push_back(node.peer);
    if (wire.state() == v1::Node::SUSPECT) node.state = Routing::State::kSuspect;
    if (wire.state() == v1::Node::DOWN) node.state = Routing::State::kDown;
    all_up = all_up && node.state == Routing::State::kUp;
    input.nodes.push_back(std::move(node));
  }
  absl::StatusOr<Routing> routing = Routing::Build(std::move(input));
  if (!routing.ok()) return;  // no ring to route by: any endpoint will do
  routing_ = *std::move(routing);
  members_ = std::move(members);
  all_up_ = all_up;
  topology_at_ = Clock::now();
  epoch_.store(routing_->epoch(), std::memory_order_relaxed);
}

void GrpcConnection::Refresh(std::optional<PeerId> first) {
  std::vector<std::shared_ptr<Peer>> asked;
  TimePoint later;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = Clock::now();
    if (ended_ || refreshing_ || refresh_planned_) return;
    if (now < refresh_after_) {
      refresh_planned_ = true;
      later = refresh_after_;
    } else {
      refreshing_ = true;
      std::vector<PeerId> tried;
      const auto add = [&](std::optional<PeerId> peer) {
        if (peer) tried.push_back(*peer);
      };
      add(first);
      while (tried.size() < kAsked) {
        const size_t before = tried.size();
        add(PickAny(members_, now, avoid_until_, tried));
        if (tried.size() == before) add(PickAny(endpoints_, now, avoid_until_, tried));
        if (tried.size() == before) break;
      }
      for (auto peer = tried.rbegin(); peer != tried.rend(); ++peer) asked.push_back(peers_[*peer]);
    }
  }
  if (later != TimePoint()) return RefreshLater(later);
  AskNext(std::move(asked));
}

void GrpcConnection::RefreshLater(TimePoint time) {
  timer_->RunAt(time, [weak = weak_from_this()](Wake wake) {
    const std::shared_ptr<GrpcConnection> self = weak.lock();
    if (self == nullptr || wake == Wake::kStopped) return;
    {
      const std::lock_guard lock(self->mutex_);
      self->refresh_planned_ = false;
    }
    self->Refresh(std::nullopt);
  });
}

void GrpcConnection::AskNext(std::vector<std::shared_ptr<Peer>> asked) {
  if (asked.empty()) return RefreshDone();
  const std::shared_ptr<Peer> peer = std::move(asked.back());
  asked.pop_back();
  peer->AskTopology([weak = weak_from_this(), asked = std::move(asked)](const grpc::Status& status,
                                                                        const v1::Topology& topology) {
    const std::shared_ptr<GrpcConnection> self = weak.lock();
    if (self == nullptr) return;
    if (!status.ok()) return self->AskNext(asked);
    self->OnTopology(topology);
    self->RefreshDone();
  });
}

void GrpcConnection::RefreshDone() {
  const std::lock_guard lock(mutex_);
  refreshing_ = false;
  topology_at_ = Clock::now();  // also after a failure: the next is asked for in a while, or for a cause
  refresh_after_ = topology_at_ + kRefreshPause;
}

}  // namespace

std::shared_ptr<Connection> MakeGrpcConnection(GrpcConnectionOptions options) {
  auto connection = std::make_shared<GrpcConnection>(std::move(options));
  connection->AddEndpoints();  // nodes point back to it, so it must be shared first
  return connection;
}

}  // namespace sdk
}  // namespace gyre
