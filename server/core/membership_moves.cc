// Steps, and what follows from them.
#include "server/core/membership_moves.h"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "ring/replica_ranges.h"

namespace gyre {

std::string_view NameOf(MoveStep step) {
  switch (step) {
    case MoveStep::kNone:
      return "none";
    case MoveStep::kAck:
      return "ack";
    case MoveStep::kSync:
      return "sync";
    case MoveStep::kSyncAck:
      return "sync-ack";
    case MoveStep::kDone:
      return "done";
  }
  return "?";
}

namespace {

constexpr size_t kNamesMax = 8;

// How many replicas of a key may not be missing. R replicas that have not heard of an abort could still
// answer a read by what it takes back. A read is only promised to see a write when R + W > n; with less in
// the keyspace a client may ask for more, up to quorums.
int ReadersOf(const KeyspaceSpec& keyspace) {
  const int r = CountOf(keyspace.r, keyspace.n);
  return r + CountOf(keyspace.w, keyspace.n) > keyspace.n ? r : keyspace.n / 2 + 1;
}

}  // namespace

void ReplicaSets::Compute() {
  computed_ = true;
  for (const KeyspaceSpec& keyspace : view_->layout.keyspaces) {
    const auto [entry, added] = by_count_.try_emplace(keyspace.n);
    OfCount& of = entry->second;
    const int strict = std::min(CountOf(keyspace.r, keyspace.n), CountOf(keyspace.w, keyspace.n));
    const int readers = ReadersOf(keyspace);
    of.below[0] = added ? strict : std::min(of.below[0], strict);
    of.below[1] = added ? readers : std::min(of.below[1], readers);
    if (!added) continue;
    for (ReplicaRange& range : ReplicaRangesOf(view_->ring, static_cast<size_t>(keyspace.n))) {
      of.sets.push_back(std::move(range.members));
    }
    std::ranges::sort(of.sets);
    of.sets.erase(std::ranges::unique(of.sets).begin(), of.sets.end());
  }
}

bool ReplicaSets::Enough(const std::vector<bool>& missing, Need need) {
  if (std::ranges::find(missing, true) == missing.end()) return true;
  if (!computed_) Compute();
  const auto is_missing = [&](MemberIndex index) { return missing[index]; };
  for (const auto& [count, of] : by_count_) {
    const int below = of.below[static_cast<size_t>(need)];
    for (const std::vector<MemberIndex>& set : of.sets) {
      if (std::ranges::count_if(set, is_missing) >= below) return false;
    }
  }
  return true;
}

void Moves::Begin(std::shared_ptr<const View> view, std::shared_ptr<const View> other) {
  assert(view != nullptr);
  assert(other == nullptr || view->layout.moves());
  steps_.clear();
  sets_ = ReplicaSets(other);
  handed_over_ = false;
  all_acked_stamp_ = 0;
  layouts_.view = std::move(view);
  layouts_.other = std::move(other);
  layouts_.acked.clear();
  layouts_.all_acked = false;
  layouts_.reads_other = false;
  ++layouts_.stamp;
  retired_stamp_ = layouts_.stamp;
  Publish();
}

void Moves::Remember(const std::vector<control::MemberStep>& steps) {
  for (const control::MemberStep& each : steps) steps_[each.node] = each.step;
  Publish();
}

bool Moves::Learn(std::span<const control::MemberStep> steps) {
  bool news = false;
  for (const control::MemberStep& each : steps) {
    if (each.step <= StepOf(each.node) || !TakesPart(each.node)) continue;
    steps_[each.node] = each.step;
    news = true;
  }
  if (news) Publish();
  return news;
}

void Moves::Retire() {
  if (!moving()) return;
  layouts_.other = nullptr;
  ++layouts_.stamp;
  sets_ = ReplicaSets(nullptr);
  Publish();
  retired_stamp_ = layouts_.stamp;
}

Moves::News Moves::Advance(const LaneSteps& lane, bool bound) {
  News news;
  if (view() == nullptr || !view()->layout.moves()) return news;
  for (;;) {
    if (moving() && MayRetire()) {
      Retire();
      news.retired = true;
    }
    const MoveStep next = NextStep(lane, bound);
    if (next == own()) return news;
    steps_[self_] = next;
    news.step = true;
    Publish();
  }
}

// What this node's step can be now.
MoveStep Moves::NextStep(const LaneSteps& lane, bool bound) {
  const MoveStep now = own();
  if (!TakesPart(self_) || lane.epoch != view()->layout.epoch) return now;
  if (!moving()) return LaneIsDone(lane) ? MoveStep::kDone : now;
  switch (now) {
    case MoveStep::kNone:
      return lane.ready ? MoveStep::kAck : now;
    case MoveStep::kAck: {
      if (view()->layout.abort || !layouts_.all_acked) return now;  // who goes back has everything
      return lane.synced && lane.stamp >= all_acked_stamp_ ? MoveStep::kSync : now;
    }
    case MoveStep::kSync: {
      if (!handed_over_) {
        if (bound || !AllOfView(MoveStep::kSync)) return now;
        handed_over_ = true;
        Publish();
        handed_over_stamp_ = layouts_.stamp;
      }
      // Told only when it is so: who knows of it counts on this node's refusing reads by the other layout.
      return lane.stamp >= handed_over_stamp_ ? MoveStep::kSyncAck : now;
    }
    case MoveStep::kSyncAck:
    case MoveStep::kDone:
      return now;
  }
  return now;
}

bool Moves::MayRetire() {
  // Whoever is done knew that it has retired.
  if (std::ranges::any_of(steps_, [](const auto& entry) { return entry.second == MoveStep::kDone; }))
    return true;
  // Reads have gone by `view` all along, but for those of nodes that have not heard of the abort. These need
  // replicas that have not, either. Whether the members of `view` alone have heard of it does not matter:
  // every write, by whomever, is also one by their placement.
  if (view()->layout.abort) return EnoughOfOther(MoveStep::kAck, ReplicaSets::Need::kRead);
  // Voters that are committed do not vote for an abort: so a chosen one and this exclude each other.
  return AllOfView(MoveStep::kSyncAck) && AbortIsImpossible() &&
         EnoughOfOther(MoveStep::kSyncAck, ReplicaSets::Need::kReadAndWrite);
}

MoveStep Moves::StepOf(NodeId node) const {
  const auto found = steps_.find(node);
  return found == steps_.end() ? MoveStep::kNone : found->second;
}

bool Moves::AbortIsImpossible() const {
  const std::vector<NodeId>& voters = view()->layout.voters;
  const auto committed = [&](NodeId voter) { return StepOf(voter) >= MoveStep::kSyncAck; };
  const auto free = voters.size() - static_cast<size_t>(std::ranges::count_if(voters, committed));
  return free <= voters.size() / 2;
}

bool Moves::LaneIsDone(const LaneSteps& lane) const {
  return !moving() && view() != nullptr && lane.done && lane.epoch == view()->layout.epoch &&
         lane.stamp >= retired_stamp_;
}

std::vector<control::MemberStep> Moves::steps() const {
  std::vector<control::MemberStep> steps;
  steps.reserve(steps_.size());
  for (const auto& [node, step] : steps_) steps.push_back({node, step});
  return steps;
}

std::string Moves::Progress() const {
  assert(moving());
  const bool abort = view()->layout.abort;
  MoveStep step = MoveStep::kAck;
  if (!abort && layouts_.all_acked) step = AllOfView(MoveStep::kSync) ? MoveStep::kSyncAck : MoveStep::kSync;
  std::string names;
  size_t waited_for = 0;
  const auto wait_for = [&](const View& of) {
    for (const Member& member : of.ring.members()) {
      if (StepOf(member.id) >= step || IsLost(member.id)) continue;
      if (&of == other().get() && view()->ring.IndexOf(member.id) >= 0) continue;  // named already
      if (++waited_for <= kNamesMax) names += (names.empty() ? "" : ", ") + ToString(member.id);
    }
  };
  wait_for(*view());
  if (step != MoveStep::kSync) wait_for(*other());
  if (waited_for > kNamesMax) names += " and " + std::to_string(waited_for - kNamesMax) + " more";
  return "data moves from the layout of epoch " + std::to_string(other()->layout.epoch) +
         " to that of epoch " + std::to_string(view()->layout.epoch) + (abort ? ", which goes back" : "") +
         "; waiting for the " + std::string(NameOf(step)) + " of node " +
         (names.empty() ? "this one" : names);
}

bool Moves::TakesPart(NodeId node) const {
  return view()->ring.IndexOf(node) >= 0 || (moving() && other()->ring.IndexOf(node) >= 0) ||
         steps_.contains(node);  // of a layout that has retired
}

bool Moves::IsLost(NodeId node) const { return std::ranges::binary_search(view()->layout.lost, node); }

bool Moves::AllOfView(MoveStep step) const {
  return std::ranges::all_of(view()->ring.members(),
                             [&](const Member& member) { return StepOf(member.id) >= step; });
}

bool Moves::EnoughOfOther(MoveStep step, ReplicaSets::Need need) {
  const std::span<const Member> members = other()->ring.members();
  std::vector<bool> missing(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    missing[i] = StepOf(members[i].id) < step && !IsLost(members[i].id);
  }
  return sets_.Enough(missing, need);
}

// Brings what the lane is handed up to date.
void Moves::Publish() {
  Layouts next = layouts_;
  next.acked.clear();
  next.all_acked = false;
  next.reads_other = false;
  if (moving()) {
    for (const auto& [node, step] : steps_) {
      if (step >= MoveStep::kAck) next.acked.push_back(node);
    }
    next.all_acked = layouts_.all_acked || (AllOfView(MoveStep::kAck) &&
                                            EnoughOfOther(MoveStep::kAck, ReplicaSets::Need::kReadAndWrite));
    next.reads_other = !view()->layout.abort && !committed();
  }
  const auto said = [](const Layouts& layouts) {
    return std::tie(layouts.view, layouts.other, layouts.reads_other, layouts.acked, layouts.all_acked);
  };
  if (said(next) == said(layouts_)) return;
  ++next.stamp;
  if (next.all_acked && !layouts_.all_acked) all_acked_stamp_ = next.stamp;
  layouts_ = std::move(next);
}

}  // namespace gyre
