// The stable cut, step by step.
#include "server/core/stable_cut.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gyre {
namespace {

constexpr uint64_t kSlowClockMs = 10'000;

uint64_t Ready(uint64_t wall_ms, uint64_t drift_ms) {
  return wall_ms > drift_ms ? CounterOfMillis(wall_ms - drift_ms) : 0;
}

std::vector<NodeId> MembersOf(const Turn& turn) {
  std::vector<NodeId> nodes;
  for (const Member& member : turn.view()->layout.members) nodes.push_back(member.id);
  if (turn.layouts.other != nullptr) {
    for (const Member& member : turn.layouts.other->layout.members) {
      if (turn.view()->ring.IndexOf(member.id) < 0) nodes.push_back(member.id);
    }
  }
  return nodes;
}

bool SameNews(const peer::CutState& a, const peer::CutState& b) {
  return a.confirmed == b.confirmed && a.exchanged == b.exchanged && a.cut == b.cut && a.all == b.all &&
         a.filling == b.filling;
}

}  // namespace

StableCut::StableCut(const CutMarks& marks, uint64_t drift_ms, OpId first_op, Replica& replica)
    : drift_ms_(drift_ms), next_op_(first_op), marks_(marks), sent_(marks) {
  replica.cuts() = {.held = marks.cut, .promised = marks.confirmed, .heard_of = marks.cut};
}

void StableCut::Tick(const Turn& turn, const Parts& parts) {
  const bool filling = parts.replica.filling() || parts.replica.gaining();
  const bool filled = std::exchange(was_filling_, filling) && !filling;
  if (turn.now.steady < next_at_ && !filled) return;
  next_at_ = turn.now.steady + kEvery;
  if (turn.view() == nullptr) return;
  self_.filling = filling;
  self_.confirmed = marks_.confirmed;
  self_.cut = filling ? 0 : marks_.cut;
  self_.exchanged = filling ? 0 : parts.exchange.exchanged();
  self_.all = parts.replica.cuts().all;
  if (turn.now.steady >= publish_at_) {
    self_.ready = std::max(self_.ready, Ready(turn.now.wall_ms, drift_ms_));
    if (turn.layouts.moving()) {
      candidate_ = 0;
    } else {
      Confirm(turn, parts);
    }
  }
  parts.exchange.Confirmed(Least(turn, &peer::CutState::confirmed));
  const uint64_t exchanged = Least(turn, &peer::CutState::exchanged);
  // What one replica holds all of its range have exchanged for: a newcomer has what the one before it had,
  // and takes its cut with it. Else what it gives on later would pass for older than what the others let go.
  // One that is ahead of this node's clock is none (HearCuts).
  const uint64_t full = filling ? 0 : CutOfFull(turn);
  const bool past = full <= CounterOfMillis(turn.now.wall_ms + drift_ms_);
  const uint64_t reached = filling ? 0 : std::max(exchanged, past ? full : 0);
  if (reached > sent_.cut) {
    sent_.cut = reached;
    Persist(turn);
  }
  HearCuts(turn, parts.replica);
  self_.all = parts.replica.cuts().all;
  if (turn.now.steady >= publish_at_ || !SameNews(self_, published_)) Publish(turn);
  blockers_ = FindBlockers(turn);
  clock_offset_ms_ = clocks_.OffsetMs(turn);
  next_at_ = publish_at_;
}

// The promise is kept from the moment it is decided, and told once it is durable.
void StableCut::Confirm(const Turn& turn, const Parts& parts) {
  if (on_its_way_) return;
  if (candidate_ == 0) {
    const uint64_t ready = Least(turn, &peer::CutState::ready);
    if (ready <= marks_.confirmed || !parts.handoff.knows_all()) return;
    candidate_ = ready;
    begun_before_ = parts.coordinator.next_op();
  }
  if (parts.coordinator.AnyBefore(begun_before_) || !parts.replica.holds_no_data_hints()) return;
  sent_.confirmed = std::exchange(candidate_, 0);
  parts.replica.cuts().promised = sent_.confirmed;
  Persist(turn);
}

// All that was sent before is in it: batches may fail, or be joined.
void StableCut::Persist(const Turn& turn) {
  on_its_way_ = true;
  turn.out.cuts = sent_;
}

void StableCut::Committed(const CutMarks& marks, bool ok, Replica& replica) {
  on_its_way_ = false;
  next_at_ = {};
  if (!ok) return;
  marks_ = {std::max(marks_.confirmed, marks.confirmed), std::max(marks_.cut, marks.cut)};
  Cuts& cuts = replica.cuts();
  cuts.held = marks_.cut;
  cuts.heard_of = std::max(cuts.heard_of, cuts.held);
}

void StableCut::Receive(const Turn& turn, NodeId from, uint64_t fence, OpId op, const peer::CutState& state,
                        Replica& replica) {
  Member& member = members_[from];
  if (op <= member.op) return;
  member = {op, fence, state};
  clocks_.Heard(turn, from, state.wall_ms);
  HearCuts(turn, replica);
  next_at_ = std::min(next_at_, turn.now.steady + kSoon);
}

// A newcomer may have fetched all before the next round, and takes the cut of those that it has heard by
// then.
void StableCut::PeerUp(const Turn& turn, NodeId node) {
  if (published_.wall_ms != 0) turn.Send(node, next_op_++, published_);
}

void StableCut::HearCuts(const Turn& turn, Replica& replica) {
  Cuts& cuts = replica.cuts();
  cuts.all = std::max(cuts.all, Least(turn, &peer::CutState::cut));
  // No cut was ever ahead of any member's clock: nothing is collected by one that is.
  const uint64_t present = CounterOfMillis(turn.now.wall_ms + drift_ms_);
  for (const auto& [node, member] : members_) {
    const peer::CutState& state = member.state;
    if (state.all <= present) cuts.all = std::max(cuts.all, state.all);
    // This node's clock may have gone back: it mints above whatever it is told.
    cuts.heard_of = std::max({cuts.heard_of, state.confirmed, state.cut, state.all});
  }
  if (replica.filling() || replica.gaining()) cuts.full = CutOfFull(turn);
}

bool StableCut::KnowsWhatWasPromised(const Turn& turn) const {
  bool all_said = true;
  for (const NodeId node : MembersOf(turn)) {
    if (node == turn.self) continue;
    const auto member = members_.find(node);
    if (member == members_.end()) {
      all_said = false;
    } else if (!member->second.state.filling) {
      return true;
    }
  }
  return all_said;
}

void StableCut::Filled(const Turn& turn, Replica& replica) {
  sent_.cut = marks_.cut = CutOfFull(turn);
  replica.cuts().held = marks_.cut;
  next_at_ = {};
  Persist(turn);
}

// What the replicas hold that do not fill, by the range for which that is least: one of which all replicas
// fill has no cut.
uint64_t StableCut::CutOfFull(const Turn& turn) {
  // Who leaves is in the layout before only.
  const bool stays = turn.view()->ring.IndexOf(turn.self) >= 0;
  const std::shared_ptr<const View>& view = stays ? turn.view() : turn.reads();
  const int self = view->ring.IndexOf(turn.self);
  std::optional<uint64_t> least;
  for (const KeyspaceSpec& keyspace : view->layout.keyspaces) {
    for (const ReplicaRange& range : ranges_.Of(view, keyspace.n)) {
      if (std::ranges::find(range.members, self) == range.members.end()) continue;
      uint64_t cut = 0;
      for (const MemberIndex index : range.members) {
        const auto member = members_.find(view->ring.members()[index].id);
        if (member != members_.end() && !member->second.state.filling) {
          cut = std::max(cut, member->second.state.cut);
        }
      }
      least = std::min(least.value_or(cut), cut);
    }
  }
  return least.value_or(0);
}

uint64_t StableCut::Least(const Turn& turn, uint64_t peer::CutState::*number) const {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const NodeId node : MembersOf(turn)) {
    if (node == turn.self) {
      least = std::min(least, self_.*number);
      continue;
    }
    const auto member = members_.find(node);
    if (member == members_.end()) return 0;
    if (number == &peer::CutState::exchanged && member->second.fence != turn.view()->layout.fence) return 0;
    least = std::min(least, member->second.state.*number);
  }
  return least;
}

void StableCut::Publish(const Turn& turn) {
  self_.wall_ms = turn.now.wall_ms;
  published_ = self_;
  publish_at_ = turn.now.steady + kEvery;
  for (const NodeId node : MembersOf(turn)) {
    if (node != turn.self && turn.Up(node)) turn.Send(node, next_op_, self_);
  }
  ++next_op_;
}

std::vector<StableCut::Blocker> StableCut::FindBlockers(const Turn& turn) const {
  std::vector<Blocker> blockers;
  const auto state = [&](NodeId node) -> const peer::CutState* {
    if (node == turn.self) return &self_;
    const auto member = members_.find(node);
    return member == members_.end() ? nullptr : &member->second.state;
  };
  const std::vector<NodeId> members = MembersOf(turn);
  for (const NodeId node : members) {
    const peer::CutState* const said = state(node);
    if (!turn.Up(node)) {
      blockers.push_back({node, "it is away"});
    } else if (said == nullptr) {
      blockers.push_back({node, "it has not been heard of yet"});
    } else if (said->filling) {
      blockers.push_back({node, turn.layouts.moving() ? "it fetches what the newest layout gives it"
                                                      : "it fills a store that was lost"});
    }
  }
  if (!blockers.empty()) return blockers;
  for (const NodeId node : members) {
    if (state(node)->ready + CounterOfMillis(drift_ms_ + kSlowClockMs) < self_.ready) {
      blockers.push_back({node, "its clock is behind"});
    }
  }
  struct Step {
    uint64_t peer::CutState::*before;
    uint64_t peer::CutState::*number;
    const char* why;
  };
  static constexpr Step kSteps[] = {
      {&peer::CutState::ready, &peer::CutState::confirmed,
       "it has operations under way, or hints that hold data"},
      {&peer::CutState::confirmed, &peer::CutState::exchanged, "it has not compared with all replicas"},
      {&peer::CutState::exchanged, &peer::CutState::cut, "it has not made the cut durable"},
  };
  for (const Step& step : kSteps) {
    const uint64_t least = Least(turn, step.number);
    if (least >= Least(turn, step.before)) continue;
    for (const NodeId node : members) {
      if (state(node)->*(step.number) == least) blockers.push_back({node, step.why});
    }
    break;
  }
  return blockers;
}

}  // namespace gyre
