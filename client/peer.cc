// A node's probe, session, queue and deadlines.
#include "client/peer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "client/wire.h"

namespace gyre {
inline namespace sdk {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kMessageBytesMax = 16 << 20;
constexpr int kReconnectFirstMs = 50;
constexpr int kReconnectMaxMs = 1000;
// How many connect timeouts one attempt of gRPC to connect may take: more than one, so that a probe of a
// silent node ends by its own deadline, which tells it from one that was refused. After that gRPC
// reports a failure at once, so a call that begins later hears UNAVAILABLE: true as well, as nothing was
// sent.
constexpr int kTimeoutsPerConnect = 4;
// What a stream may have sent before it was read. Fixed, for gRPC's way of finding one by itself sends a ping
// and a window update for nearly every message.
constexpr int kWindowBytes = 1 << 20;
constexpr milliseconds kProbePauseFirst{25};
constexpr milliseconds kProbePauseMax{1000};

// Why thread_local: only the calls that this very thread makes are known to be followed by the flush at its
// end.
thread_local Cork* cork_of_thread = nullptr;

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, milliseconds connect_timeout,
                                           const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectFirstMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   static_cast<int>(kTimeoutsPerConnect * connect_timeout.count()));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
                   1);  // no state shared with other clients of this process
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

void Fail(std::vector<Outstanding::Entry>& entries, Fate unsent_fate, const absl::Status& status) {
  for (Outstanding::Entry& entry : entries) {
    const Fate fate = entry.stream == 0 ? unsent_fate : Fate::kLost;
    entry.exchange->Done({.fate = fate, .status = status, .reply = {}});
  }
}

}  // namespace

Cork::Cork() : outermost_(cork_of_thread == nullptr) {
  if (outermost_) cork_of_thread = this;
}

Cork::~Cork() {
  if (!outermost_) return;
  cork_of_thread = nullptr;
  for (const std::shared_ptr<Peer>& peer : peers_) peer->Flush();
}

bool Cork::Defer(const std::shared_ptr<Peer>& peer) {
  if (cork_of_thread == nullptr) return false;
  std::vector<std::shared_ptr<Peer>>& peers = cork_of_thread->peers_;
  if (std::find(peers.begin(), peers.end(), peer) == peers.end()) peers.push_back(peer);
  return true;
}

bool Cork::Active() { return cork_of_thread != nullptr; }

struct Peer::Ask {
  grpc::ClientContext context;
  v1::TopologyRequest request;
  v1::TopologyReply reply;
};

Peer::Peer(PeerId id, std::string address, Environment environment)
    : id_(id), address_(std::move(address)), environment_(std::move(environment)) {}

v1::Kv::Stub& Peer::Stub() {
  if (stub_ == nullptr)
    stub_ = v1::Kv::NewStub(
        MakeChannel(address_, environment_.connect_timeout, environment_.credentials.channel));
  return *stub_;
}

absl::Status Peer::Admit(size_t bytes) const {
  if (state_ == State::kClosed) return absl::CancelledError("the client was destroyed");
  if (outstanding_.size() >= kOutstandingMax || outstanding_.bytes() + bytes > kOutstandingBytesMax) {
    return absl::ResourceExhaustedError("too many calls wait for node " + address_ +
                                        ": let some finish before making more");
  }
  if (state_ == State::kIdle && failures_ > 0 && Clock::now() < probe_after_) {
    return last_failure_;
  }
  return absl::OkStatus();
}

void Peer::Send(std::shared_ptr<Exchange> exchange, Connection::SendOptions options) {
  const size_t bytes = WireBytes(exchange->request());
  absl::Status refusal;
  bool probe = false;
  bool sweep = false;
  {
    const std::lock_guard lock(mutex_);
    refusal = Admit(bytes);
    if (refusal.ok()) {
      queue_.push_back(outstanding_.Add(
          {.exchange = exchange, .options = options, .stream = 0, .sent_at = {}, .bytes = bytes}));
      probe = state_ == State::kIdle;
      if (probe) state_ = State::kProbing;
      sweep = options.deadline < sweep_at_;
      if (sweep) sweep_at_ = options.deadline;
    }
  }
  if (!refusal.ok())
    return exchange->Done({.fate = Fate::kNotSent, .status = std::move(refusal), .reply = {}});
  if (sweep) SweepAt(options.deadline);
  if (probe) return Probe();
  if (!Cork::Defer(shared_from_this())) Flush();
}

void Peer::Flush() {
  std::shared_ptr<SessionStream> stream;
  std::vector<SessionStream::Item> batch;
  {
    const std::lock_guard lock(mutex_);
    while (!queue_.empty() && outstanding_.Find(queue_.front()) == nullptr) queue_.pop_front();
    if (state_ != State::kOpen || queue_.empty() || !stream_->BeginWrite()) return;
    stream = stream_;
    const TimePoint now = Clock::now();
    size_t bytes = 0;
    while (!queue_.empty() && batch.size() < kBatchRequestsMax) {
      if (Outstanding::Entry* entry = outstanding_.Find(queue_.front()); entry != nullptr) {
        if (!batch.empty() && bytes + entry->bytes > kBatchBytesMax) break;
        bytes += entry->bytes;
        entry->stream = stream->number();
        entry->sent_at = now;
        batch.push_back({queue_.front(), entry->exchange, entry->options.time_allowed});
      }
      queue_.pop_front();
    }
  }
  stream->Write(batch);
}

void Peer::OnReplies(v1::SessionReplies& replies) {
  const Cork cork;
  std::vector<std::pair<std::shared_ptr<Exchange>, v1::SessionReply*>> answered;
  answered.reserve(static_cast<size_t>(replies.replies_size()));
  uint64_t epoch = 0;
  {
    const std::lock_guard lock(mutex_);
    last_reply_ = Clock::now();
    for (v1::SessionReply& reply : *replies.mutable_replies()) {
      epoch = std::max(epoch, LayoutEpochOf(reply));
      // Late answers, of calls that have expired, find nothing.
      Outstanding::Entry entry = outstanding_.Take(reply.id());
      if (entry.exchange != nullptr) answered.emplace_back(std::move(entry.exchange), &reply);
    }
  }
  if (const std::shared_ptr<PeerHost> host = environment_.host.lock()) host->OnEpoch(id_, epoch);
  for (auto& [exchange, reply] : answered) exchange->Done(FromWire(*reply));
}

void Peer::OnBroken(uint64_t stream) {
  const Cork cork;
  bool probe = false;
  {
    const std::lock_guard lock(mutex_);
    if (stream_ == nullptr || stream_->number() != stream) return;
    stream_ = nullptr;
    if (state_ == State::kClosed) return;
    // What is still queued was not sent: it waits for the next session.
    probe = !queue_.empty();
    state_ = probe ? State::kProbing : State::kIdle;
  }
  if (const std::shared_ptr<PeerHost> host = environment_.host.lock()) host->OnTrouble(id_, 1);
  if (probe) Probe();
}

void Peer::OnEnded(uint64_t stream, const grpc::Status& why) {
  const Cork cork;
  std::vector<Outstanding::Entry> lost;
  {
    const std::lock_guard lock(mutex_);
    lost = outstanding_.TakeIf([&](const Outstanding::Entry& entry) { return entry.stream == stream; });
  }
  Fail(lost, Fate::kLost,
       absl::UnavailableError("the session with node " + address_ + " ended before it answered" +
                              (why.error_message().empty() ? "" : ": " + why.error_message())));
}

void Peer::AskTopology(std::function<void(const grpc::Status&, const v1::Topology&)> done) {
  auto ask = std::make_shared<Ask>();
  ask->context.set_deadline(std::chrono::system_clock::now() + environment_.connect_timeout);
  environment_.running->Enter();
  v1::Kv::Stub* stub = nullptr;
  {
    const std::lock_guard lock(mutex_);
    stub = &Stub();
    std::erase_if(asks_, [](const std::weak_ptr<Ask>& old) { return old.expired(); });
    asks_.push_back(ask);
    if (state_ == State::kClosed) ask->context.TryCancel();
  }
  stub->async()->Topology(
      &ask->context, &ask->request, &ask->reply,
      [self = shared_from_this(), ask, done = std::move(done)](const grpc::Status& status) mutable {
        {
          const Cork cork;
          done(status, ask->reply.topology());
        }
        const std::shared_ptr<Running> running = self->environment_.running;
        done = nullptr;
        ask = nullptr;
        self = nullptr;
        running->Leave();
      });
}

void Peer::Probe() {
  AskTopology(
      [this](const grpc::Status& status, const v1::Topology& topology) { OnProbed(status, topology); });
}

void Peer::OnProbed(const grpc::Status& status, const v1::Topology& topology) {
  const std::shared_ptr<PeerHost> host = environment_.host.lock();
  if (status.ok()) {
    if (host != nullptr) {
      host->OnWell(id_);
      host->OnTopology(topology);
    }
    return Open();
  }
  std::vector<Outstanding::Entry> unsent;
  absl::Status failure;
  int failures = 0;
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kProbing) return;  // closed meanwhile
    state_ = State::kIdle;
    failures = ++failures_;
    const milliseconds pause = std::min(kProbePauseMax, kProbePauseFirst * (1 << std::min(failures, 8)));
    // Spread by what differs between clients and nodes alike: where this object happens to lie.
    const auto spread = static_cast<int64_t>((reinterpret_cast<uintptr_t>(this) >> 6) % 32);
    probe_after_ = Clock::now() + pause - pause * spread / 64;
    failure = last_failure_ = NotReached(address_, environment_.credentials, status);
    queue_.clear();
    unsent = outstanding_.TakeIf([](const Outstanding::Entry& entry) { return entry.stream == 0; });
  }
  if (host != nullptr) host->OnTrouble(id_, failures);
  Fail(unsent, Fate::kNotSent, failure);
}

void Peer::Open() {
  std::shared_ptr<SessionStream> stream;
  v1::Kv::Stub* stub = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kProbing) return;  // closed meanwhile
    failures_ = 0;
    stream = stream_ = std::make_shared<SessionStream>(shared_from_this(), environment_.running, ++streams_);
    stub = &Stub();
  }
  stream->Start(*stub);  // without the lock, as gRPC may react at once
  {
    const std::lock_guard lock(mutex_);
    if (stream_ != stream || state_ != State::kProbing) return;  // broken or closed meanwhile
    state_ = State::kOpen;
  }
  Flush();
}

void Peer::SweepAt(TimePoint time) {
  environment_.timer->RunAt(time, [weak = weak_from_this()](Wake wake) {
    if (wake == Wake::kStopped) return;  // Shutdown answers what is outstanding
    if (const std::shared_ptr<Peer> self = weak.lock()) self->Sweep();
  });
}

void Peer::Sweep() {
  const Cork cork;
  const TimePoint now = Clock::now();
  std::vector<Outstanding::Entry> late;
  TimePoint next;
  std::shared_ptr<SessionStream> hung;
  {
    const std::lock_guard lock(mutex_);
    late =
        outstanding_.TakeIf([&](const Outstanding::Entry& entry) { return entry.options.deadline <= now; });
    next = sweep_at_ = outstanding_.NextDeadline();
    // A node that answered nothing since is not slow but away.
    const bool silent = std::any_of(late.begin(), late.end(), [&](const Outstanding::Entry& entry) {
      return stream_ != nullptr && entry.stream == stream_->number() && last_reply_ < entry.sent_at;
    });
    if (silent) hung = stream_;
  }
  if (next != TimePoint::max()) SweepAt(next);
  if (hung != nullptr) {
    if (const std::shared_ptr<PeerHost> host = environment_.host.lock()) host->OnTrouble(id_, 1);
    hung->Cancel();
  }
  Fail(late, Fate::kNotSent, absl::DeadlineExceededError("node " + address_ + " did not answer in time"));
}

void Peer::Shutdown() {
  std::vector<Outstanding::Entry> left;
  std::vector<std::shared_ptr<Ask>> asks;
  std::shared_ptr<SessionStream> stream;
  {
    const std::lock_guard lock(mutex_);
    state_ = State::kClosed;
    queue_.clear();
    left = outstanding_.TakeIf([](const Outstanding::Entry&) { return true; });
    stream = stream_;
    for (const std::weak_ptr<Ask>& weak : asks_) asks.push_back(weak.lock());
  }
  if (stream != nullptr) stream->Cancel();
  for (const std::shared_ptr<Ask>& ask : asks) {
    if (ask != nullptr) ask->context.TryCancel();
  }
  Fail(left, Fate::kNotSent, absl::CancelledError("the client was destroyed"));
}

}  // namespace sdk
}  // namespace gyre
