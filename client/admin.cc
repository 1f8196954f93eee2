// The operators' calls: one unary call each, to the first endpoint that answers.
#include "client/admin.h"

#include <algorithm>
#include <utility>

#include "client/admin_stubs.h"
#include "client/credentials.h"
#include "client/wire.h"
#include "ring/token.h"

namespace gyre {
inline namespace sdk {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReachMax{1000};
constexpr int kMessageBytesMax = 32 << 20;
constexpr int kKeepaliveMs = 10'000;

std::string StateName(v1::Node::State state) {
  if (state == v1::Node::UP) return "up";
  return state == v1::Node::SUSPECT ? "suspect" : "down";
}

NodeStatus NodeOf(const v1::Node& wire) {
  return {.id = wire.id(),
          .address = wire.address(),
          .zone = wire.zone(),
          .weight = wire.weight(),
          .state = StateName(wire.state()),
          .state_ms = wire.state_ms(),
          .member = wire.member(),
          .step = wire.step(),
          .tokens = {wire.tokens().begin(), wire.tokens().end()},
          .keys = wire.facts().keys(),
          .bytes = wire.facts().bytes(),
          .filling = wire.facts().filling(),
          .collectible = wire.facts().collectible(),
          .hints_held = wire.facts().hints_held(),
          .version = wire.facts().version()};
}

StableCutInfo StableCutOf(const v1::StableCut& wire) {
  StableCutInfo cut;
  if (wire.has_lag_ms()) cut.lag_ms = wire.lag_ms();
  for (const v1::CutBlocker& blocker : wire.blocked_by()) {
    cut.blocked_by.push_back({blocker.node(), blocker.why()});
  }
  return cut;
}

std::optional<Replicas> ReplicasOf(const v1::Replicas& wire) {
  if (wire.how_case() == v1::Replicas::kCount) return Replicas::Count(wire.count());
  switch (wire.name()) {
    case v1::Replicas::ONE:
      return Replicas::One();
    case v1::Replicas::QUORUM:
      return Replicas::Quorum();
    case v1::Replicas::ALL:
      return Replicas::All();
    default:
      return std::nullopt;
  }
}

}  // namespace

KeyspaceInfo KeyspaceOf(const v1::Keyspace& wire) {
  return {.id = wire.id(),
          .name = wire.name(),
          .n = wire.n(),
          .r = ReplicasOf(wire.r()),
          .w = ReplicasOf(wire.w()),
          .conflict = wire.conflict(),
          .ttl_ms = wire.ttl_ms(),
          .strict = wire.strict()};
}

AdminClient::AdminClient(std::vector<std::string> endpoints, milliseconds timeout,
                         std::optional<TlsFiles> tls)
    : endpoints_(std::move(endpoints)), timeout_(timeout), tls_(std::move(tls)) {}

AdminClient::~AdminClient() = default;

absl::StatusOr<std::unique_ptr<AdminClient::Stubs>> AdminClient::Reach() {
  const auto deadline = std::chrono::system_clock::now() + timeout_;
  absl::Status failure = absl::UnavailableError("there is no node to ask: give at least one endpoint");
  const auto credentials = MakeCredentials(tls_);
  if (!credentials.ok()) return credentials.status();
  for (const std::string& endpoint : endpoints_) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);  // for streams, which have no deadline
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    const auto channel = grpc::CreateCustomChannel(endpoint, credentials->channel, arguments);
    auto stubs =
        std::make_unique<Stubs>(Stubs{v1::Kv::NewStub(channel), v1::Admin::NewStub(channel), deadline});
    grpc::ClientContext context;
    context.set_deadline(std::min(deadline, std::chrono::system_clock::now() + kReachMax));
    v1::TopologyReply topology;
    const grpc::Status status = stubs->kv->Topology(&context, {}, &topology);
    if (status.ok()) return stubs;
    // One that is silent outweighs those that refuse.
    const absl::Status why = NotReached(endpoint, *credentials, status);
    if (absl::IsDeadlineExceeded(why) || !absl::IsDeadlineExceeded(failure)) failure = why;
  }
  return failure;
}

absl::StatusOr<ClusterInfo> AdminClient::ClusterStatus() {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::ClusterStatus, v1::ClusterStatusRequest());
  if (!reply.ok()) return reply.status();
  const v1::Topology& topology = reply->topology();
  ClusterInfo info{.cluster_id = topology.cluster_id(),
                   .layout_epoch = topology.layout_epoch(),
                   .layout_digest = topology.layout_digest(),
                   .active_layouts = topology.active_layouts(),
                   .answered_by = topology.answered_by(),
                   .nodes = {},
                   .keyspaces = {},
                   .converged = reply->converged(),
                   .stable_cut = StableCutOf(reply->stable_cut())};
  for (int i = 0; i < topology.nodes_size(); ++i) {
    NodeStatus node = NodeOf(topology.nodes(i));
    if (i < reply->shares_size()) {
      node.owned = reply->shares(i).owned();
      node.replicated = reply->shares(i).replicated();
    }
    info.nodes.push_back(std::move(node));
  }
  for (const v1::Node& holder : topology.nodes()) {
    for (const auto& [owed, hints] : holder.facts().hints_for()) {
      for (NodeStatus& node : info.nodes) {
        if (node.id == ToString(NodeId{owed})) node.hints_owed += hints;
      }
    }
  }
  for (const v1::Keyspace& keyspace : topology.keyspaces()) info.keyspaces.push_back(KeyspaceOf(keyspace));
  return info;
}

absl::StatusOr<Location> AdminClient::Locate(const std::string& keyspace, const std::string& key) {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  v1::LocateRequest request;
  request.set_keyspace(keyspace);
  request.set_key(key);
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::Locate, request);
  if (!reply.ok()) return reply.status();
  Location location{
      .token = reply->token(), .layout_epoch = reply->layout_epoch(), .primaries = {}, .fallbacks = {}};
  for (const v1::Node& node : reply->primaries()) location.primaries.push_back(NodeOf(node));
  for (const v1::Node& node : reply->fallbacks()) location.fallbacks.push_back(NodeOf(node));
  return location;
}

absl::StatusOr<KeyspaceResult> AdminClient::CreateKeyspace(const KeyspaceInfo& keyspace) {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  v1::CreateKeyspaceRequest request;
  v1::Keyspace& wire = *request.mutable_keyspace();
  wire.set_name(keyspace.name);
  wire.set_n(keyspace.n);
  if (keyspace.r) ToWire(*keyspace.r, *wire.mutable_r());
  if (keyspace.w) ToWire(*keyspace.w, *wire.mutable_w());
  wire.set_conflict(keyspace.conflict);
  wire.set_ttl_ms(keyspace.ttl_ms);
  wire.set_strict(keyspace.strict);
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::CreateKeyspace, request);
  if (!reply.ok()) return reply.status();
  return KeyspaceResult{KeyspaceOf(reply->keyspace()), reply->layout_epoch()};
}

absl::StatusOr<KeyspaceResult> AdminClient::SetKeyspace(const KeyspaceChange& change) {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  v1::SetKeyspaceRequest request;
  request.set_name(change.name);
  if (change.r) ToWire(*change.r, *request.mutable_r());
  if (change.w) ToWire(*change.w, *request.mutable_w());
  if (change.ttl_ms) request.set_ttl_ms(*change.ttl_ms);
  if (change.strict) request.set_strict(*change.strict);
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::SetKeyspace, request);
  if (!reply.ok()) return reply.status();
  return KeyspaceResult{KeyspaceOf(reply->keyspace()), reply->layout_epoch()};
}

absl::StatusOr<KeyspaceResult> AdminClient::DropKeyspace(const std::string& name) {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  v1::DropKeyspaceRequest request;
  request.set_name(name);
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::DropKeyspace, request);
  if (!reply.ok()) return reply.status();
  return KeyspaceResult{KeyspaceOf(reply->keyspace()), reply->layout_epoch()};
}

absl::StatusOr<std::vector<RangeDigest>> AdminClient::Digests(const std::string& keyspace) {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  v1::DigestsRequest request;
  request.set_keyspace(keyspace);
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::Digests, request);
  if (!reply.ok()) return reply.status();
  std::vector<RangeDigest> digests;
  for (const v1::Digest& wire : reply->digests()) {
    digests.push_back({.node = reply->node(),
                       .keyspace = wire.keyspace(),
                       .begin = wire.begin(),
                       .end = wire.end(),
                       .sum = wire.sum()});
  }
  return digests;
}

absl::StatusOr<RepairTotals> AdminClient::Repair(Repairing what) {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  v1::RepairRequest request;
  request.set_start(what != Repairing::kLook);
  request.set_wait(what == Repairing::kStartAndWait);
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::Repair, request);
  if (!reply.ok()) return reply.status();
  return RepairTotals{.node = reply->node(),
                      .unequal_ranges = reply->unequal_ranges(),
                      .ranges = reply->ranges(),
                      .records_compared = reply->records_compared(),
                      .records_sent = reply->records_sent(),
                      .bytes_sent = reply->bytes_sent(),
                      .hash_bytes = reply->hash_bytes()};
}

absl::StatusOr<HolderHints> AdminClient::Hints(bool wait) {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  v1::HintsRequest request;
  request.set_wait(wait);
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::Hints, request);
  if (!reply.ok()) return reply.status();
  HolderHints held{.counted = reply->counted(), .hints = {}};
  for (const v1::HintsFor& wire : reply->hints()) {
    held.hints.push_back({.holder = reply->node(),
                          .node = wire.node(),
                          .hints = wire.hints(),
                          .bytes = wire.bytes(),
                          .delivered = wire.delivered()});
  }
  return held;
}

absl::StatusOr<RecordDump> AdminClient::NodeDump(const std::string& keyspace, const std::string& key) {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  v1::NodeDumpRequest request;
  request.set_keyspace(keyspace);
  request.set_key(key);
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::NodeDump, request);
  if (!reply.ok()) return reply.status();
  RecordDump dump{.node = reply->node(),
                  .found = reply->found(),
                  .record = reply->record(),
                  .seen = {reply->seen().begin(), reply->seen().end()},
                  .versions = {}};
  for (const v1::DumpVersion& version : reply->versions()) {
    dump.versions.push_back({.value = {.bytes = version.value().value(),
                                       .dot = version.value().dot(),
                                       .expires_at_ms = version.value().expires_at_ms()},
                             .write_id = version.write_id(),
                             .retried = version.retried()});
  }
  return dump;
}

absl::StatusOr<Verification> AdminClient::NodeVerify() {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::NodeVerify, v1::NodeVerifyRequest());
  if (!reply.ok()) return reply.status();
  return Verification{.node = reply->node(),
                      .leaves = reply->leaves(),
                      .rows = reply->rows(),
                      .differences = reply->differences()};
}

absl::StatusOr<NodeCounters> AdminClient::NodeStats() {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::NodeStats, v1::NodeStatsRequest());
  if (!reply.ok()) return reply.status();
  NodeCounters counters{.node = reply->node(),
                        .counters = {reply->counters().begin(), reply->counters().end()},
                        .hot_keys = {},
                        .calls = reply->calls()};
  for (const v1::HotKey& hot : reply->hot_keys()) {
    counters.hot_keys.push_back(
        {.keyspace = hot.keyspace(), .key = hot.key(), .calls = hot.calls(), .too_many = hot.too_many()});
  }
  return counters;
}

}  // namespace sdk
}  // namespace gyre
