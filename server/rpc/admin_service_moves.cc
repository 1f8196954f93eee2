// The operators' service: plans, applying them, and the movement of data that follows.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ring/ownership.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/convert_plan.h"
#include "server/rpc/status.h"
#include "server/rpc/topology.h"

namespace gyre {
namespace {

constexpr Micros kChangeTimeout = Seconds(4);
constexpr double kFractionTelling = .05;  // of a range that was fetched, from which the rest can be told

ClusterStatistics StatisticsOf(const Backend& backend) {
  ClusterStatistics statistics;
  const std::shared_ptr<const ClusterState::Known> known = backend.state.known();
  for (const auto& [id, info] : *known) {
    statistics[id] = {.up = LivenessOf(backend, id).state == Liveness::State::kUp,
                      .filling = info.facts.filling,
                      .dropping = info.facts.dropping,
                      .rows = info.facts.rows};
  }
  return statistics;
}

std::string ProgressOf(const Layouts& layouts, const std::vector<control::MemberStep>& steps) {
  const auto synced =
      std::ranges::count_if(steps, [](const auto& member) { return member.step >= MoveStep::kSync; });
  return "data still moves to layout " + std::to_string(layouts.view->layout.epoch) + ": " +
         std::to_string(synced) + " of " + std::to_string(steps.size()) +
         " members have got all that it gives them";
}

std::string Joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : "; ") + sentence;
  return text;
}

uint64_t Total(uint64_t done, double fraction, uint64_t estimate) {
  if (fraction >= 1) return done;
  if (fraction >= kFractionTelling) return static_cast<uint64_t>(static_cast<double>(done) / fraction);
  return std::max(done, estimate);
}

v1::Move::State StateOf(MoveStats::State state, bool paused) {
  switch (state) {
    case MoveStats::State::kDone:
      return v1::Move::DONE;
    case MoveStats::State::kPaused:
      return v1::Move::PAUSED;
    case MoveStats::State::kRunning:
      return paused ? v1::Move::PAUSED : v1::Move::RUNNING;
    case MoveStats::State::kWaiting:
      break;
  }
  return paused ? v1::Move::PAUSED : v1::Move::WAITING;
}

// The moves of this node, in the order in which they are made.
class MoveTeller {
 public:
  MoveTeller(const Backend& backend, const Layouts& layouts)
      : stats_(backend.lane_stats),
        view_(*layouts.view),
        giving_(layouts.moving() ? *layouts.other : *layouts.view),
        known_(backend.state.known()) {}

  void Tell(const MoveStats& from, v1::Move& to) {
    const bool paused = stats_.moves_paused;
    const bool done = from.state == MoveStats::State::kDone;
    const KeyspaceSpec* const keyspace = view_.Keyspace(from.keyspace);
    const double fraction = done ? 1 : from.fraction_done;
    const RowTotals estimate = done ? RowTotals{} : Estimate(from);
    to.set_from(ToString(from.from));
    to.set_keyspace(keyspace == nullptr ? "" : keyspace->name);
    to.set_begin(from.range.begin.value);
    to.set_end(from.range.end.value);
    to.set_keys_done(from.keys_done);
    to.set_keys_total(Total(from.keys_done, fraction, estimate.rows));
    to.set_bytes_done(from.bytes_done);
    to.set_state(StateOf(from.state, paused));
    bytes_ahead_ += static_cast<double>(Total(from.bytes_done, fraction, estimate.bytes) - from.bytes_done);
    const auto rate = static_cast<double>(stats_.move_bytes_per_second);
    if (done) {
      to.set_eta_seconds(0);
    } else if (!paused && rate > 0) {
      to.set_eta_seconds(bytes_ahead_ / rate);
    }
  }

 private:
  // What a range holds, by what the node that gives it says of itself.
  RowTotals Estimate(const MoveStats& move) {
    const KeyspaceSpec* const keyspace = giving_.Keyspace(move.keyspace);
    const int giver = giving_.ring.IndexOf(move.from);
    const auto info = known_->find(move.from);
    if (keyspace == nullptr || giver < 0 || info == known_->end()) return {};
    const auto rows = info->second.facts.rows.find(keyspace->id);
    if (rows == info->second.facts.rows.end()) return {};
    std::vector<Share>& shares = shares_[keyspace->id];
    if (shares.empty()) shares = SharesOf(giving_.ring, static_cast<size_t>(keyspace->n));
    const Positions has = shares[static_cast<size_t>(giver)].replicated;
    if (has == 0) return {};
    const double part = FractionOf(move.range.width()) / FractionOf(has);
    return {.rows = static_cast<uint64_t>(part * static_cast<double>(rows->second.rows)),
            .bytes = static_cast<uint64_t>(part * static_cast<double>(rows->second.bytes))};
  }

  const LaneStats& stats_;
  const View& view_;
  const View& giving_;
  const std::shared_ptr<const ClusterState::Known> known_;
  std::map<uint32_t, std::vector<Share>> shares_;  // by keyspace
  double bytes_ahead_ = 0;
};

}  // namespace

grpc::ServerUnaryReactor* AdminService::Plan(grpc::CallbackServerContext* context,
                                             const v1::PlanRequest* request, v1::PlanReply* reply) {
  const Layouts layouts = backend_.state.layouts();
  if (layouts.view == nullptr) return Finished(context, NotFormed());
  if (layouts.moving()) {
    return Finished(context,
                    absl::FailedPreconditionError(
                        ProgressOf(layouts, backend_.state.steps()) +
                        ", and a plan is for the layout after that; plan when it is over (gyre cluster "
                        "moves)"));
  }
  const absl::StatusOr<MemberChanges> changes =
      ToMemberChanges(*layouts.view, *backend_.state.known(), request->changes());
  if (!changes.ok()) return Finished(context, changes.status());
  const absl::StatusOr<gyre::Plan> plan = MakePlan(*layouts.view, *changes, StatisticsOf(backend_));
  if (!plan.ok()) return Finished(context, plan.status());
  FromPlan(*plan, *reply);
  return Finished(context, absl::OkStatus());
}

// What is asked for once more after it was made is answered as it was then: an answer may have been lost.
grpc::ServerUnaryReactor* AdminService::Apply(grpc::CallbackServerContext* context,
                                              const v1::ApplyRequest* request, v1::ApplyReply* reply) {
  backend_.access.LogChange(*context, *request);
  const Layouts layouts = backend_.state.layouts();
  if (layouts.view == nullptr) return Finished(context, NotFormed());
  const Layout& layout = layouts.view->layout;
  if (layout.base_digest == request->base_digest() && PlanHash(layout) == request->hash()) {
    reply->set_layout_epoch(layout.epoch);
    return Finished(context, absl::OkStatus());
  }
  if (layouts.moving()) {
    return Finished(context, absl::FailedPreconditionError(
                                 ProgressOf(layouts, backend_.state.steps()) +
                                 "; nothing was applied: wait until it has, or go back with gyre cluster "
                                 "moves abort, and plan again"));
  }
  if (layouts.view->digest != request->base_digest() || layout.epoch != request->base_epoch()) {
    return Finished(context,
                    absl::FailedPreconditionError("the layout changed since the plan was made (from " +
                                                  std::to_string(request->base_epoch()) + " to " +
                                                  std::to_string(layout.epoch) +
                                                  " on this node), and nothing was applied; plan again"));
  }
  absl::StatusOr<MemberChanges> changes =
      ToMemberChanges(*layouts.view, *backend_.state.known(), request->changes());
  if (!changes.ok()) return Finished(context, changes.status());
  const absl::StatusOr<gyre::Plan> plan = MakePlan(*layouts.view, *changes, StatisticsOf(backend_));
  if (!plan.ok()) return Finished(context, plan.status());
  if (plan->hash != request->hash()) {
    return Finished(context,
                    absl::FailedPreconditionError(
                        "the changes no longer lead to what was planned, as a new node says something "
                        "else of its zone or weight; nothing was applied; plan again"));
  }
  if (!plan->loss.empty() && !request->force()) {
    return Finished(context, absl::FailedPreconditionError(
                                 "the plan may lose data, and nothing was applied: start the nodes that are "
                                 "down, or use --force. " +
                                 Joined(plan->loss)));
  }
  if (request->force()) changes->lost = plan->leaving_down;
  return ChangeMembers(context,
                       LayoutChange::Members{.changes = *std::move(changes),
                                             .base_digest = request->base_digest(),
                                             .hash = request->hash(),
                                             .base_epoch = request->base_epoch()},
                       reply);
}

// Newcomers that are down are not waited for: the others hold all that was written.
grpc::ServerUnaryReactor* AdminService::AbortMove(grpc::CallbackServerContext* context,
                                                  const v1::AbortMoveRequest* request,
                                                  v1::ApplyReply* reply) {
  backend_.access.LogChange(*context, *request);
  const Layouts layouts = backend_.state.layouts();
  if (layouts.view == nullptr) return Finished(context, NotFormed());
  LayoutChange::Abort abort;
  for (const Member& member : layouts.view->layout.members) {
    const bool came = layouts.moving() && layouts.other->ring.IndexOf(member.id) < 0;
    if (came && LivenessOf(backend_, member.id).state != Liveness::State::kUp)
      abort.lost.push_back(member.id);
  }
  return ChangeMembers(context, std::move(abort), reply);
}

// The answer comes from the control thread, when the new layout is chosen or cannot be.
grpc::ServerUnaryReactor* AdminService::ChangeMembers(grpc::CallbackServerContext* context,
                                                      LayoutChange::What what, v1::ApplyReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  backend_.control.Change(std::move(what), kChangeTimeout,
                          [reactor, reply](absl::StatusOr<std::shared_ptr<const View>> view) {
                            if (view.ok()) reply->set_layout_epoch((*view)->layout.epoch);
                            reactor->Finish(ToGrpc(view.status()));
                          });
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::Moves(grpc::CallbackServerContext* context, const v1::MovesRequest*,
                                              v1::MovesReply* reply) {
  const Layouts layouts = backend_.state.layouts();
  if (layouts.view == nullptr) return Finished(context, NotFormed());
  reply->set_node(ToString(backend_.self));
  reply->set_layout_epoch(layouts.view->layout.epoch);
  reply->set_active_layouts(layouts.moving() ? 2 : 1);
  reply->set_going_back(layouts.view->layout.abort);
  reply->set_finished(!layouts.moving() && IsFinished(layouts.view->layout));
  reply->set_paused(backend_.lane_stats.moves_paused);
  reply->set_bytes_per_second(backend_.lane_stats.move_bytes_per_second);
  MoveTeller teller(backend_, layouts);
  for (const MoveStats& move : backend_.lane_stats.moves()) teller.Tell(move, *reply->add_moves());
  return Finished(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* AdminService::ControlMoves(grpc::CallbackServerContext* context,
                                                     const v1::ControlMovesRequest* request,
                                                     v1::ControlMovesReply* reply) {
  backend_.access.LogChange(*context, *request);
  if (request->has_bytes_per_second() && request->bytes_per_second() == 0) {
    return Finished(context, absl::InvalidArgumentError(
                                 "a rate of 0 bytes per second moves nothing: use gyre cluster moves pause"));
  }
  reply->set_node(ToString(backend_.self));
  gyre::ControlMoves control;
  if (request->has_paused()) control.paused = request->paused();
  if (request->has_bytes_per_second()) control.bytes_per_second = request->bytes_per_second();
  backend_.lane.Push(control);
  return Finished(context, absl::OkStatus());
}

}  // namespace gyre
