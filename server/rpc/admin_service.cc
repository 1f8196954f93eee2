// The operators' service.
#include "server/rpc/admin_service.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "ring/ownership.h"
#include "ring/replica_ranges.h"
#include "server/core/coordinator_ops.h"
#include "server/core/plan.h"
#include "server/rpc/backup_session.h"
#include "server/rpc/convert_control.h"
#include "server/rpc/convert_kv.h"
#include "server/rpc/kv_service.h"
#include "server/rpc/status.h"
#include "server/rpc/topology.h"
#include "storage/format/row_key.h"

namespace gyre {
namespace {

constexpr Micros kChangeTimeout = Seconds(4);

// No data moves, and all members are up, know the same layout, and found all that they share equal.
bool Converged(const v1::Topology& topology) {
  if (topology.layout_epoch() == 0 || topology.active_layouts() != 1) return false;
  for (const v1::Node& node : topology.nodes()) {
    if (!node.member()) continue;
    if (node.state() != v1::Node::UP || node.facts().layout_epoch() != topology.layout_epoch()) return false;
    if (node.facts().filling() || node.facts().hints_held() != 0 || node.facts().unequal_ranges() != 0)
      return false;
  }
  return true;
}

void FillStableCut(const Backend& backend, v1::StableCut& cut) {
  const uint64_t now_ms = backend.clock.Read().wall_ms;
  const uint64_t cut_ms = backend.lane_stats.stable_cut_ms;
  if (cut_ms > 0) cut.set_lag_ms(now_ms - std::min(now_ms, cut_ms));
  for (const CutBlockerStats& blocker : backend.lane_stats.cut_blockers()) {
    v1::CutBlocker& to = *cut.add_blocked_by();
    to.set_node(ToString(blocker.node));
    to.set_why(blocker.why);
  }
}

void FillRepair(const LaneStats& stats, v1::RepairReply& reply) {
  reply.set_rounds(stats.exchange_rounds);
  reply.set_busy(stats.exchange_busy);
  reply.set_unequal_ranges(stats.unequal_ranges);
  reply.set_ranges(stats.ranges_compared);
  reply.set_records_compared(stats.records_compared);
  reply.set_records_sent(stats.records_sent);
  reply.set_bytes_sent(stats.repair_bytes_sent);
  reply.set_hash_bytes(stats.hash_bytes_sent);
}

void FillHints(const LaneStats& stats, v1::HintsReply& reply) {
  reply.set_counted(stats.hints_counted);
  for (const auto& [node, hints] : stats.hints()) {
    v1::HintsFor& to = *reply.add_hints();
    to.set_node(ToString(node));
    to.set_hints(hints.hints);
    to.set_bytes(hints.bytes);
    to.set_delivered(hints.delivered);
  }
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::ClusterStatus(grpc::CallbackServerContext* context,
                                                      const v1::ClusterStatusRequest*,
                                                      v1::ClusterStatusReply* reply) {
  FillTopology(backend_, *reply->mutable_topology());
  const std::shared_ptr<const View> view = backend_.state.view();
  reply->set_converged(view != nullptr && IsFinished(view->layout) && Converged(reply->topology()));
  FillStableCut(backend_, *reply->mutable_stable_cut());
  if (view == nullptr) return Finished(context, absl::OkStatus());
  const KeyspaceSpec* keyspace = view->Keyspace("default");
  for (const Share& share : SharesOf(view->ring, static_cast<size_t>(keyspace ? keyspace->n : 1))) {
    v1::Share& to = *reply->add_shares();
    to.set_owned(FractionOf(share.owned));
    to.set_replicated(FractionOf(share.replicated));
  }
  return Finished(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* AdminService::Locate(grpc::CallbackServerContext* context,
                                               const v1::LocateRequest* request, v1::LocateReply* reply) {
  const std::shared_ptr<const View> view = backend_.state.view();
  if (view == nullptr) return Finished(context, NotFormed());
  if (absl::Status status = CheckKey(request->key()); !status.ok()) return Finished(context, status);
  const absl::StatusOr<const KeyspaceSpec*> keyspace = FindKeyspace(*view, request->keyspace());
  if (!keyspace.ok()) return Finished(context, keyspace.status());
  const Token token = TokenOf(request->key());
  reply->set_token(token.value);
  reply->set_layout_epoch(view->layout.epoch);
  const std::shared_ptr<const ClusterState::Known> known = backend_.state.known();
  int place = 0;
  for (const MemberIndex index : view->ring.Preferences(token)) {
    const Member& member = view->ring.members()[index];
    const auto info = known->find(member.id);
    v1::Node& node = place++ < (*keyspace)->n ? *reply->add_primaries() : *reply->add_fallbacks();
    FillNode(backend_, member.id, info == known->end() ? nullptr : &info->second, node);
    node.set_zone(member.zone);
    node.set_weight(member.weight);
    node.set_member(true);
  }
  return Finished(context, absl::OkStatus());
}

// The answer comes from the control thread, when the new layout is chosen or cannot be.
template <typename What>
grpc::ServerUnaryReactor* AdminService::Change(grpc::CallbackServerContext* context, What what,
                                               std::string keyspace, v1::KeyspaceReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  backend_.control.Change(std::move(what), kChangeTimeout,
                          [reactor, reply, keyspace](absl::StatusOr<std::shared_ptr<const View>> view) {
                            if (view.ok()) {
                              reply->set_layout_epoch((*view)->layout.epoch);
                              const KeyspaceSpec* spec = (*view)->Keyspace(keyspace);
                              if (spec != nullptr) FromKeyspace(*spec, *reply->mutable_keyspace());
                            }
                            reactor->Finish(ToGrpc(view.status()));
                          });
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::CreateKeyspace(grpc::CallbackServerContext* context,
                                                       const v1::CreateKeyspaceRequest* request,
                                                       v1::KeyspaceReply* reply) {
  backend_.access.LogChange(*context, *request);
  absl::StatusOr<KeyspaceSpec> keyspace = ToKeyspace(request->keyspace());
  if (!keyspace.ok()) return Finished(context, keyspace.status());
  std::string name = keyspace->name;
  return Change(context, LayoutChange::Create{*std::move(keyspace)}, std::move(name), reply);
}

grpc::ServerUnaryReactor* AdminService::SetKeyspace(grpc::CallbackServerContext* context,
                                                    const v1::SetKeyspaceRequest* request,
                                                    v1::KeyspaceReply* reply) {
  backend_.access.LogChange(*context, *request);
  LayoutChange::Set set = {.name = request->name()};
  absl::StatusOr<std::optional<ReplicaCount>> r = ToReplicaCount("r", request->has_r(), request->r());
  if (!r.ok()) return Finished(context, r.status());
  absl::StatusOr<std::optional<ReplicaCount>> w = ToReplicaCount("w", request->has_w(), request->w());
  if (!w.ok()) return Finished(context, w.status());
  set.r = *r;
  set.w = *w;
  if (request->has_ttl_ms()) set.ttl_ms = request->ttl_ms();
  if (request->has_strict()) set.strict = request->strict();
  return Change(context, std::move(set), request->name(), reply);
}

grpc::ServerUnaryReactor* AdminService::DropKeyspace(grpc::CallbackServerContext* context,
                                                     const v1::DropKeyspaceRequest* request,
                                                     v1::KeyspaceReply* reply) {
  backend_.access.LogChange(*context, *request);
  return Change(context, LayoutChange::Drop{request->name()}, request->name(), reply);
}

// Ends the call with what `job` returns. It runs on the disk's thread, for it may take long: a thread of gRPC
// that waited for it would hold up all the others' calls.
grpc::ServerUnaryReactor* AdminService::OnDisk(grpc::CallbackServerContext* context,
                                               std::function<absl::Status(Store&)> job) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto run = [reactor, job = std::move(job)](Store& store) { reactor->Finish(ToGrpc(job(store))); };
  if (!backend_.disk.Start(run)) reactor->Finish(ToGrpc(UnaryCalls::ShuttingDown()));
  return reactor;
}

// Ends the call when the lane answers what `ask` makes; `fill` makes the reply then.
grpc::ServerUnaryReactor* AdminService::OnLane(grpc::CallbackServerContext* context,
                                               std::function<void()> fill,
                                               const std::function<Input(Ticket, Micros deadline)>& ask) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto place = unary_->Add(
      [reactor, fill = std::move(fill)](const CallResult& result) {
        fill();
        reactor->Finish(ToGrpc(result.status));
      },
      false);
  if (place) {
    const Micros deadline = backend_.clock.Read().steady + TimeoutOf(*context);
    backend_.lane.Push(ask(Calls::TicketFor(unary_number_, *place), deadline));
  } else {
    reactor->Finish(ToGrpc(UnaryCalls::ShuttingDown()));
  }
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::Digests(grpc::CallbackServerContext* context,
                                                const v1::DigestsRequest* request, v1::DigestsReply* reply) {
  const std::shared_ptr<const View> view = backend_.state.view();
  if (view == nullptr) return Finished(context, NotFormed());
  reply->set_node(ToString(backend_.self));
  return OnDisk(context, [this, view, request, reply](Store& store) {
    const int self = view->ring.IndexOf(backend_.self);
    absl::Status status;
    for (const KeyspaceSpec& keyspace : view->layout.keyspaces) {
      if (!request->keyspace().empty() && request->keyspace() != keyspace.name) continue;
      for (const ReplicaRange& range : ReplicaRangesOf(view->ring, static_cast<size_t>(keyspace.n))) {
        if (std::find(range.members.begin(), range.members.end(), self) == range.members.end()) continue;
        v1::Digest& digest = *reply->add_digests();
        digest.set_keyspace(keyspace.name);
        digest.set_begin(range.begin.value);
        digest.set_end(range.end.value);
        const absl::StatusOr<RowHash> hash =
            store.SumOfRange(keyspace.id, range.begin.value, range.end.value);
        if (hash.ok()) {
          digest.set_sum(ToString(*hash));
        } else if (!absl::IsUnavailable(hash.status())) {
          status = hash.status();
        }
      }
    }
    return status;
  });
}

grpc::ServerUnaryReactor* AdminService::Repair(grpc::CallbackServerContext* context,
                                               const v1::RepairRequest* request, v1::RepairReply* reply) {
  if (backend_.state.view() == nullptr) return Finished(context, NotFormed());
  reply->set_node(ToString(backend_.self));
  if (!request->start() || !request->wait()) {
    if (request->start()) backend_.lane.Push(RepairNow{});
    FillRepair(backend_.lane_stats, *reply);
    return Finished(context, absl::OkStatus());
  }
  return OnLane(
      context, [this, reply] { FillRepair(backend_.lane_stats, *reply); },
      [](Ticket ticket, Micros deadline) {
        return RepairNow{ticket, deadline};
      });
}

grpc::ServerUnaryReactor* AdminService::NodeDump(grpc::CallbackServerContext* context,
                                                 const v1::NodeDumpRequest* request,
                                                 v1::NodeDumpReply* reply) {
  const std::shared_ptr<const View> view = backend_.state.view();
  if (view == nullptr) return Finished(context, NotFormed());
  if (absl::Status status = CheckKey(request->key()); !status.ok()) return Finished(context, status);
  const absl::StatusOr<const KeyspaceSpec*> keyspace = FindKeyspace(*view, request->keyspace());
  if (!keyspace.ok()) return Finished(context, keyspace.status());
  reply->set_node(ToString(backend_.self));
  const std::string row_key = MakeRowKey((*keyspace)->id, TokenOf(request->key()).value, request->key());
  const absl::StatusOr<RecordBytes> row = backend_.disk.ReadRows({&row_key, 1}).front();
  if (!row.ok()) return Finished(context, row.status());
  if (*row == nullptr) return Finished(context, absl::OkStatus());
  const absl::StatusOr<Record> record = DecodeRecord(**row);
  if (!record.ok()) return Finished(context, record.status());
  reply->set_found(true);
  reply->set_record(**row);
  for (const auto& entry : record->seen.entries()) reply->add_seen(ToString(Dot{entry.actor, entry.counter}));
  for (const Version& version : record->versions) {
    v1::DumpVersion& to = *reply->add_versions();
    to.mutable_value()->set_value(version.value);
    to.mutable_value()->set_dot(ToString(version.dot));
    to.mutable_value()->set_expires_at_ms(version.expires_ms);
    if (!version.write_id.empty()) {
      to.set_write_id(ToString(Token{version.write_id.high}) + ToString(Token{version.write_id.low}));
    }
    to.set_retried(version.retried);
  }
  return Finished(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* AdminService::NodeVerify(grpc::CallbackServerContext* context,
                                                   const v1::NodeVerifyRequest*, v1::NodeVerifyReply* reply) {
  reply->set_node(ToString(backend_.self));
  return OnDisk(context, [reply](Store& store) {
    const absl::StatusOr<Store::Verification> verified = store.Verify();
    if (!verified.ok()) return verified.status();
    reply->set_leaves(verified->leaves);
    reply->set_rows(verified->rows);
    reply->set_differences(verified->differences);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::Hints(grpc::CallbackServerContext* context,
                                              const v1::HintsRequest* request, v1::HintsReply* reply) {
  reply->set_node(ToString(backend_.self));
  if (!request->wait()) {
    FillHints(backend_.lane_stats, *reply);
    return Finished(context, absl::OkStatus());
  }
  return OnLane(
      context, [this, reply] { FillHints(backend_.lane_stats, *reply); },
      [](Ticket ticket, Micros deadline) {
        return AwaitHints{ticket, deadline};
      });
}

grpc::ServerUnaryReactor* AdminService::NodeStats(grpc::CallbackServerContext* context,
                                                  const v1::NodeStatsRequest*, v1::NodeStatsReply* reply) {
  reply->set_node(ToString(backend_.self));
  for (const auto& [name, value] : backend_.stats()) (*reply->mutable_counters())[name] = value;
  HotKeys::Report hot = backend_.counters.hot_keys.Look();
  reply->set_calls(hot.calls);
  for (HotKeys::Hot& key : hot.keys) {
    v1::HotKey& wire = *reply->add_hot_keys();
    wire.set_keyspace(std::move(key.keyspace));
    wire.set_key(std::move(key.key));
    wire.set_calls(key.calls);
    wire.set_too_many(key.too_many);
  }
  return Finished(context, absl::OkStatus());
}

grpc::ServerBidiReactor<v1::BackupRequest, v1::BackupReply>* AdminService::Backup(
    grpc::CallbackServerContext*) {
  return new BackupSession(backend_, backup_under_way_);  // deletes itself when it is done
}

}  // namespace gyre
