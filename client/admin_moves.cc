// The operators' calls about plans and the movement of data.
#include <utility>

#include "client/admin_stubs.h"

namespace gyre {
inline namespace sdk {
namespace {

void ToWire(const ClusterChanges& from, v1::MemberChanges& to) {
  for (const std::string& node : from.add) to.add_add(node);
  for (const std::string& node : from.remove) to.add_remove(node);
  for (const ClusterChanges::Replace& replace : from.replace) {
    v1::MemberChanges::Replace& out = *to.add_replace();
    out.set_old(replace.old);
    out.set_by(replace.by);
  }
  const auto fill = [](const std::vector<ClusterChanges::Number>& numbers, auto& out) {
    for (const ClusterChanges::Number& number : numbers) {
      v1::MemberChanges::Number& one = *out.Add();
      one.set_node(number.name);
      one.set_number(number.number);
    }
  };
  fill(from.weight, *to.mutable_weight());
  for (const ClusterChanges::Zone& zone : from.zone) {
    v1::MemberChanges::Zone& out = *to.add_zone();
    out.set_node(zone.node);
    out.set_zone(zone.zone);
  }
  fill(from.tokens, *to.mutable_tokens());
  for (const ClusterChanges::Number& n : from.keyspace_n) {
    v1::MemberChanges::ReplicaNumber& out = *to.add_n();
    out.set_keyspace(n.name);
    out.set_n(n.number);
  }
}

ClusterChanges ChangesOf(const v1::MemberChanges& wire) {
  ClusterChanges changes;
  changes.add = {wire.add().begin(), wire.add().end()};
  changes.remove = {wire.remove().begin(), wire.remove().end()};
  for (const auto& replace : wire.replace()) changes.replace.push_back({replace.old(), replace.by()});
  for (const auto& weight : wire.weight()) changes.weight.push_back({weight.node(), weight.number()});
  for (const auto& zone : wire.zone()) changes.zone.push_back({zone.node(), zone.zone()});
  for (const auto& tokens : wire.tokens()) changes.tokens.push_back({tokens.node(), tokens.number()});
  for (const auto& n : wire.n()) changes.keyspace_n.push_back({n.keyspace(), n.n()});
  return changes;
}

std::string StateName(v1::Move::State state) {
  switch (state) {
    case v1::Move::RUNNING:
      return "running";
    case v1::Move::PAUSED:
      return "paused";
    case v1::Move::DONE:
      return "done";
    default:
      return "waiting";
  }
}

}  // namespace

absl::StatusOr<ClusterPlan> AdminClient::Plan(const ClusterChanges& changes) {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  v1::PlanRequest request;
  ToWire(changes, *request.mutable_changes());
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::Plan, request);
  if (!reply.ok()) return reply.status();
  ClusterPlan plan{.base_epoch = reply->base_epoch(),
                   .base_digest = reply->base_digest(),
                   .hash = reply->hash(),
                   .changes = ChangesOf(reply->changes()),
                   .moves = {},
                   .before = {reply->before().owned(), reply->before().replicated()},
                   .after = {reply->after().owned(), reply->after().replicated()},
                   .warnings = {reply->warnings().begin(), reply->warnings().end()},
                   .loss = {reply->loss().begin(), reply->loss().end()}};
  for (const v1::PlannedMove& move : reply->moves()) {
    plan.moves.push_back({.from = move.from(),
                          .to = move.to(),
                          .ranges = move.ranges(),
                          .keys = move.keys(),
                          .bytes = move.bytes()});
  }
  return plan;
}

absl::StatusOr<uint64_t> AdminClient::Apply(const ClusterPlan& plan, bool force) {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  v1::ApplyRequest request;
  request.set_base_epoch(plan.base_epoch);
  request.set_base_digest(plan.base_digest);
  request.set_hash(plan.hash);
  ToWire(plan.changes, *request.mutable_changes());
  request.set_force(force);
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::Apply, request);
  if (!reply.ok()) return reply.status();
  return reply->layout_epoch();
}

absl::StatusOr<uint64_t> AdminClient::AbortMove() {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::AbortMove, v1::AbortMoveRequest());
  if (!reply.ok()) return reply.status();
  return reply->layout_epoch();
}

absl::StatusOr<NodeMoves> AdminClient::Moves() {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  const auto reply = (*stubs)->Call(&v1::Admin::Stub::Moves, v1::MovesRequest());
  if (!reply.ok()) return reply.status();
  NodeMoves moves{.node = reply->node(),
                  .layout_epoch = reply->layout_epoch(),
                  .active_layouts = reply->active_layouts(),
                  .going_back = reply->going_back(),
                  .finished = reply->finished(),
                  .paused = reply->paused(),
                  .bytes_per_second = reply->bytes_per_second(),
                  .moves = {}};
  for (const v1::Move& wire : reply->moves()) {
    moves.moves.push_back(
        {.from = wire.from(),
         .to = reply->node(),
         .keyspace = wire.keyspace(),
         .begin = wire.begin(),
         .end = wire.end(),
         .keys_done = wire.keys_done(),
         .keys_total = wire.keys_total(),
         .bytes_done = wire.bytes_done(),
         .eta_seconds = wire.has_eta_seconds() ? std::optional(wire.eta_seconds()) : std::nullopt,
         .state = StateName(wire.state())});
  }
  return moves;
}

absl::Status AdminClient::ControlMoves(const MovesControl& control) {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  v1::ControlMovesRequest request;
  if (control.paused) request.set_paused(*control.paused);
  if (control.bytes_per_second) request.set_bytes_per_second(*control.bytes_per_second);
  return (*stubs)->Call(&v1::Admin::Stub::ControlMoves, request).status();
}

}  // namespace sdk
}  // namespace gyre
