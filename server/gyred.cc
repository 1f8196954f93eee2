// A running node: composition, start and end.
#include "server/gyred.h"

#include <absl/synchronization/mutex.h>
#include <algorithm>
#include <grpcpp/grpcpp.h>
#include <map>
#include <optional>
#include <spdlog/spdlog.h>
#include <sys/random.h>
#include <utility>

#include "server/core/node.h"
#include "server/http.h"
#include "server/identity.h"
#include "server/lane/commit_thread.h"
#include "server/lane/control_thread.h"
#include "server/lane/lane_thread.h"
#include "server/node_metrics.h"
#include "server/node_store.h"
#include "server/rpc/credentials.h"
#include "server/rpc/peer_links.h"
#include "server/rpc/servers.h"
#include "server/rpc/teller.h"
#include "server/security/certificate_watch.h"
#include "server/security/permissions.h"
#include "storage/format/meta_codec.h"

namespace gyre {
namespace {

void Log(const std::string& sentence) { spdlog::info("{}", sentence); }

uint64_t RandomSeed() {
  uint64_t seed = 0;
  return getrandom(&seed, sizeof seed, 0) == sizeof seed ? seed : 1;
}

absl::StatusOr<std::optional<ActorState>> LoadActor(Engine& engine) {
  const absl::StatusOr<std::string> bytes = engine.Get(Table::kMeta, kMetaActor);
  if (absl::IsNotFound(bytes.status())) return std::nullopt;
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<ActorState> state = DecodeActorState(*bytes);
  if (!state.ok()) return state.status();
  return *state;
}

absl::StatusOr<CutMarks> LoadCuts(Engine& engine) {
  const absl::StatusOr<std::string> bytes = engine.Get(Table::kMeta, kMetaStableCut);
  if (absl::IsNotFound(bytes.status())) return CutMarks{};
  if (!bytes.ok()) return bytes.status();
  return DecodeCutMarks(*bytes);
}

absl::StatusOr<MoveState> LoadMoves(Engine& engine) {
  const absl::StatusOr<std::string> bytes = engine.Get(Table::kMeta, kMetaMoves);
  if (absl::IsNotFound(bytes.status())) return MoveState{};
  if (!bytes.ok()) return bytes.status();
  return DecodeMoveState(*bytes);
}

NodeLimits LimitsOf(const Config& config) {
  return {.value_bytes = config.limits.value_bytes,
          .siblings = config.limits.siblings,
          .record_bytes = config.limits.record_bytes,
          .calls_in_flight = config.limits.requests_in_flight,
          .hint_bytes = config.limits.hint_bytes,
          .drift_ms = static_cast<uint64_t>(config.limits.clock_drift.count())};
}

// The lane's network: messages to links, replies to whoever waits.
class LaneNetwork : public Network {
 public:
  LaneNetwork(PeerLinks& links, Calls& calls) : links_(links), calls_(calls) {}
  void Send(NodeId to, LayoutMark layout, std::vector<Message> batch) override {
    links_.Send(to, layout, std::move(batch));
  }
  void Reply(std::vector<Outbox::Reply> replies) override { calls_.Answer(std::move(replies)); }
  void WantLayout(NodeId from) override {
    if (ControlThread* control = control_.load()) control->WantLayout(from);
  }
  void SetControl(ControlThread* control) { control_ = control; }

 private:
  PeerLinks& links_;
  Calls& calls_;
  std::atomic<ControlThread*> control_ = nullptr;
};

class RunningNode : public Gyred {
 public:
  RunningNode(const Config& config, Identity identity, NodeStore opened, StoreDamage& damage,
              std::unique_ptr<CertificateWatch> certificate)
      : config_(config),
        identity_(std::move(identity)),
        opened_(std::move(opened)),
        damage_(damage),
        certificate_(std::move(certificate)),
        permissions_(*Permissions::Parse(config.security.permissions)),
        engine_(std::move(opened_.engine)),
        store_(*engine_),
        disk_(store_, {config.storage.durability, identity_.store_dir(), config.limits.disk_reserve_bytes},
              [this](Input input) { inbox_.Push(std::move(input)); }),
        links_(identity_.node(), clock_, inbox_, {counters_, credentials_, access()}),
        teller_(credentials_),
        network_(links_, calls_) {}

  ~RunningNode() override { Drain(); }

  absl::Status Serve();
  bool WantsNewStart() override;
  void Drain() override;
  absl::Status end() const override {
    absl::MutexLock lock(&end_mutex_);
    return end_;
  }

 private:
  Access access() const { return Access(certificate_ ? &permissions_ : nullptr); }
  void LetGoOfSetAside();
  bool AllUp(const View& view) const;
  absl::StatusOr<Membership> MakeMembership();
  ControlThread::Hooks MembershipHooks();
  void LogClock();
  void Joined(const Layouts& layouts);
  void EraseDropped(const std::shared_ptr<const View>& view);
  void Removed(const std::string& why);
  absl::Status Ready() const;

  const Config config_;
  Identity identity_;
  NodeStore opened_;  // its engine is engine_
  StoreDamage& damage_;
  std::string obstacle_;  // to rebuilding a damaged store, as last told
  bool clock_was_off_ = false;
  MachineClock clock_;
  Inbox<Input> inbox_;
  const std::unique_ptr<CertificateWatch> certificate_;  // nullptr: TLS is off
  const Permissions permissions_;
  RpcCounters counters_;
  Credentials credentials_{certificate_.get(), counters_};
  LaneStats lane_stats_;
  Calls calls_;
  ClusterState state_;
  std::unique_ptr<Engine> engine_;
  Store store_;
  CommitThread disk_;
  PeerLinks links_;
  Teller teller_;
  LaneNetwork network_;
  Metrics metrics_;
  std::optional<LaneThread> lane_;
  std::optional<ControlThread> control_;
  std::optional<Backend> backend_;
  std::unique_ptr<RpcServers> servers_;
  std::unique_ptr<HttpServer> http_;
  std::shared_ptr<const View> dropped_below_;  // the last view whose dropped keyspaces were erased
  bool drained_ = false;
  mutable absl::Mutex end_mutex_;
  absl::Status end_ ABSL_GUARDED_BY(end_mutex_);
};

absl::StatusOr<Membership> RunningNode::MakeMembership() {
  absl::StatusOr<std::map<std::string, std::string>> persisted = ControlThread::Load(*engine_);
  if (!persisted.ok()) return persisted.status();
  Membership::Config config;
  config.self = {.id = identity_.node(),
                 .address = config_.listen.advertise_client,
                 .peer_address = config_.listen.advertise_peer,
                 .zone = config_.node.zone,
                 .weight = config_.node.weight,
                 .generation = clock_.Read().wall_ms};
  config.seeds = config_.cluster.seeds;
  config.bootstrap_expect = config_.cluster.bootstrap_expect;
  config.random_seed = RandomSeed();
  config.auto_join = config_.cluster.auto_join;
  absl::Status status;
  Membership membership(std::move(config), *persisted, &status);
  if (!status.ok()) return status;
  const uint64_t recorded = identity_.cluster();
  if (membership.view() != nullptr && recorded != 0 && recorded != membership.view()->layout.cluster_id) {
    return absl::FailedPreconditionError("the store in " + identity_.store_dir() + " is of cluster " +
                                         ToString(Token{membership.view()->layout.cluster_id}) +
                                         " but the identity beside it is of cluster " +
                                         ToString(Token{recorded}) + "; put back the right one");
  }
  if (const std::string removed = membership.removed(); !removed.empty()) {
    return absl::FailedPreconditionError(removed + " (" + identity_.data_dir() + ")");
  }
  return membership;
}

ControlThread::Hooks RunningNode::MembershipHooks() {
  return {
      .tell = [this](const std::string& address,
                     const control::Message& message) { teller_.Tell(address, message); },
      .new_layouts = [this](const Layouts& layouts) { Joined(layouts); },
      .steps = [this] { return lane_stats_.steps(); },
      .known =
          [this](const ClusterState::Known& known, const std::vector<NodeId>& suspects) {
            LogClock();
            const Layouts layouts = state_.layouts();
            if (layouts.view == nullptr) return;
            for (const std::string& sentence : links_.Update(layouts, known, suspects)) Log(sentence);
          },
      .facts =
          [this] {
            const Engine::Size size = engine_->EstimateSize();
            std::map<NodeId, uint64_t> hints_for;
            for (const auto& [node, hints] : lane_stats_.hints()) {
              if (hints.hints > 0) hints_for[node] = hints.hints;
            }
            const std::map<uint32_t, RowTotals> rows = disk_.totals();
            uint64_t counted = 0;
            for (const auto& [keyspace, totals] : rows) counted += totals.rows;
            return NodeFactsValue{.keys = rows.empty() ? size.keys : counted,
                                  .bytes = size.bytes,
                                  .rows = rows,
                                  .hints_for = std::move(hints_for),
                                  .collectible = disk_.collectible(),
                                  .unequal_ranges = lane_stats_.unequal_ranges,
                                  .filling = lane_stats_.filling,
                                  .dropping = lane_stats_.dropping,
                                  .version = std::string(kGyredVersion)};
          },
      .log = Log,
      .removed = [this](const std::string& why) { Removed(why); },
  };
}

// Once when the clock goes wrong, and once when it is right again.
void RunningNode::LogClock() {
  const bool off = lane_stats_.clock_is_off;
  if (std::exchange(clock_was_off_, off) == off) return;
  if (off) {
    Log("this node's clock differs by " + std::to_string(lane_stats_.clock_offset_ms) +
        " ms from the median of the members' clocks, more than limits.clock_drift_ms: other nodes coordinate "
        "its "
        "writes until it is set right");
  } else {
    Log("this node's clock is right again");
  }
}

// Rows of keyspaces that the newest layout does not have: their ids are never used again.
void RunningNode::EraseDropped(const std::shared_ptr<const View>& view) {
  if (dropped_below_ != nullptr && dropped_below_ != view) {
    for (const KeyspaceSpec& keyspace : dropped_below_->layout.keyspaces) {
      if (view->Keyspace(keyspace.id) != nullptr) continue;
      absl::Status status;
      const auto drop = [&](Store& store) { status = store.DropKeyspace(keyspace.id); };
      if (disk_.Run(drop).ok() && !status.ok()) spdlog::error("{}", std::string(status.message()));
    }
  }
  dropped_below_ = view;
}

void RunningNode::Joined(const Layouts& layouts) {
  if (absl::Status status = identity_.SetCluster(layouts.view->layout.cluster_id); !status.ok()) {
    spdlog::error("{}", std::string(status.message()));
  }
  EraseDropped(layouts.view);
  inbox_.Push(NewLayouts{layouts});
}

// Nobody asks this node for anything any more.
void RunningNode::Removed(const std::string& why) {
  spdlog::error("{}", why);
  {
    absl::MutexLock lock(&end_mutex_);
    end_ = absl::FailedPreconditionError(why);
  }
}

absl::Status RunningNode::Serve() {
  absl::StatusOr<std::optional<ActorState>> actor = LoadActor(*engine_);
  if (!actor.ok()) return actor.status();
  const absl::StatusOr<CutMarks> cuts = LoadCuts(*engine_);
  if (!cuts.ok()) return cuts.status();
  const absl::StatusOr<MoveState> moves = LoadMoves(*engine_);
  if (!moves.ok()) return moves.status();
  absl::StatusOr<Membership> membership = MakeMembership();
  if (!membership.ok()) return membership.status();
  const Now now = clock_.Read();
  Node::Config node = {.self = identity_.node(),
                       .limits = LimitsOf(config_),
                       .first_op = now.wall_ms << 20,
                       .filling = opened_.filling,
                       .cuts = *cuts,
                       .moves = *moves};
  lane_stats_.filling = opened_.filling;
  lane_.emplace(node, ActorClock(identity_.node().value, *actor, now.wall_ms),
                Runtime{clock_, network_, disk_, lane_stats_}, inbox_);
  control_.emplace(*std::move(membership), clock_, disk_, state_, MembershipHooks());
  network_.SetControl(&*control_);
  AddNodeMetrics(
      metrics_, {counters_, lane_stats_, disk_, *engine_, state_,
                 [this](Liveness::State state) { return links_.Count(state); }, damage_, certificate_.get()});
  backend_.emplace(Backend{.self = identity_.node(),
                           .clock = clock_,
                           .lane = inbox_,
                           .calls = calls_,
                           .state = state_,
                           .control = *control_,
                           .disk = disk_,
                           .counters = counters_,
                           .lane_stats = lane_stats_,
                           .access = access(),
                           .calls_in_flight_max = config_.limits.requests_in_flight,
                           .incoming_link = [this](NodeId from, bool open) { links_.Incoming(from, open); },
                           .liveness = [this](NodeId node) { return links_.LivenessOf(node); },
                           .stats = [this] { return metrics_.Values(); }});
  auto servers = RpcServers::Start(*backend_, {.client_address = config_.listen.client,
                                               .peer_address = config_.listen.peer,
                                               .credentials = credentials_,
                                               .connections_max = config_.limits.connections,
                                               .network_bytes = config_.limits.network_bytes});
  if (!servers.ok()) return servers.status();
  servers_ = *std::move(servers);
  auto http = HttpServer::Start(config_.listen.http, {.metrics = [this] { return metrics_.Text(); },
                                                      .ready = [this] { return Ready(); }});
  if (!http.ok()) return http.status();
  http_ = *std::move(http);
  servers_->SetServing(true);
  return absl::OkStatus();
}

absl::Status RunningNode::Ready() const {
  // The lane serves, and it hears of the layout after the state that all threads see.
  if (lane_stats_.steps().epoch == 0) return absl::UnavailableError("not in a cluster yet");
  return absl::OkStatus();
}

// Says once why a damaged store is not rebuilt.
bool RunningNode::WantsNewStart() {
  LetGoOfSetAside();
  const absl::Status damage = damage_.first();
  if (damage.ok()) return false;
  const std::shared_ptr<const View> view = state_.view();
  const std::string obstacle = ObstacleToRebuild(opened_, view.get(), view != nullptr && AllUp(*view),
                                                 RoomToRebuild(identity_), clock_.Read().wall_ms);
  if (obstacle.empty()) {
    spdlog::error("{}: this node goes out of service, rebuilds its store, and fills from them",
                  std::string(damage.message()));
    return true;
  }
  if (std::exchange(obstacle_, obstacle) != obstacle) {
    spdlog::error("{}: it is passed over, for {}", std::string(damage.message()), obstacle);
  }
  return false;
}

bool RunningNode::AllUp(const View& view) const {
  return std::ranges::all_of(view.layout.members, [&](const Member& member) {
    return member.id == identity_.node() || links_.LivenessOf(member.id).state == Liveness::State::kUp;
  });
}

// What a damaged store was set aside for has come, once this node is durably full.
void RunningNode::LetGoOfSetAside() {
  if (!opened_.set_aside || lane_stats_.filling) return;
  if (!absl::IsNotFound(engine_->Get(Table::kMeta, kMetaFilling).status()) || !engine_->Sync().ok()) return;
  opened_.set_aside = false;
  if (absl::Status status = RemoveSetAside(identity_); !status.ok()) {
    spdlog::warn("{}", std::string(status.message()));
  } else {
    Log("this node is full again: the damaged store that was set aside is removed");
  }
}

// From the outside in: no new calls, the last answers, the last batch, the sums, the mark of a clean end.
void RunningNode::Drain() {
  if (std::exchange(drained_, true)) return;
  if (servers_ != nullptr) servers_->SetServing(false);
  http_.reset();
  inbox_.Close();
  std::optional<ActorState> clean;
  if (lane_) clean = lane_->Join();
  if (servers_ != nullptr) servers_->Stop();
  network_.SetControl(nullptr);
  if (control_) control_->Stop();
  teller_.Stop();
  links_.Stop();
  const auto finish = [&](Store& store) {
    if (absl::Status status = store.SaveSums(); !status.ok())
      spdlog::warn("{}", std::string(status.message()));
    if (!clean) return;
    const EngineWrite mark = {Table::kMeta, std::string(kMetaActor),
                              std::make_shared<const std::string>(EncodeActorState(*clean))};
    if (absl::Status status = store.Commit({}, {&mark, 1}, Durability::kDisk); !status.ok()) {
      spdlog::warn("{}", std::string(status.message()));
    }
  };
  if (lane_ && !disk_.Run(finish).ok()) spdlog::warn("the end could not be marked as clean");
  disk_.Stop();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Gyred>> Gyred::Start(const Config& config, StoreDamage& damage,
                                                    absl::FunctionRef<bool()> go_on) {
  absl::StatusOr<Identity> identity = OpenIdentity(config.node.data_dir);
  if (!identity.ok()) return identity.status();
  std::unique_ptr<CertificateWatch> certificate;
  if (config.security.on()) {
    auto started = CertificateWatch::Start(
        {config.security.ca, config.security.certificate, config.security.key}, identity->node());
    if (!started.ok()) return started.status();
    certificate = *std::move(started);
  }
  absl::StatusOr<NodeStore> store = OpenNodeStore(*identity, damage, go_on);
  if (!store.ok()) return store.status();
  const NodeId self = identity->node();
  auto node = std::make_unique<RunningNode>(config, *std::move(identity), *std::move(store), damage,
                                            std::move(certificate));
  if (absl::Status status = node->Serve(); !status.ok()) return status;
  spdlog::info("node {} serves clients at {}, peers at {}, HTTP at {}, {} TLS", ToString(self),
               config.listen.client, config.listen.peer, config.listen.http,
               config.security.on() ? "with" : "without");
  return node;
}

}  // namespace gyre
