// Membership: the steps of a movement as they are persisted and told, and what becomes of nodes that leave.
#include <algorithm>
#include <utility>

#include "server/core/membership.h"
#include "server/core/membership_codec.h"
#include "storage/format/meta_codec.h"

namespace gyre {
namespace {

constexpr Micros kForgetAfter = Seconds(60);
constexpr size_t kTellAtOnce = 8;

std::string Key(std::string_view name) { return std::string(kMetaMembership).append(name); }

}  // namespace

// Takes the steps that can be taken now. They are persisted before anything is sent (MembershipOutbox).
void Membership::Advance(Now now, MembershipOutbox& out) {
  const Moves::News news = moves_.Advance(lane_, IsBound(now));
  if (news.retired) Retired(now, out);
  if (news.step) PersistSteps(out);
  if (news.step || news.retired) TellSteps(out);
}

// The layout before the newest is active no more.
void Membership::Retired(Now now, MembershipOutbox& out) {
  PersistOther(out);
  out.log.push_back("The layout before that of epoch " + std::to_string(epoch()) +
                    " has retired: the data that was to move has moved" +
                    (view()->layout.abort ? " back." : "."));
  Propose(now, out);  // an abort comes too late now
}

void Membership::LearnSteps(const std::vector<control::MemberStep>& steps) {
  if (!view() || !view()->layout.moves()) return;
  moves_.Learn(std::span(steps).first(std::min(steps.size(), control::kStepsMax)));
}

void Membership::PersistOther(MembershipOutbox& out) const {
  StoredOther stored = {.epoch = epoch(), .other = std::nullopt};
  if (moves_.moving()) stored.other = moves_.other()->layout;
  out.persists.push_back({Key("other"), EncodeOther(stored)});
}

void Membership::PersistSteps(MembershipOutbox& out) const {
  out.persists.push_back({Key("steps"), EncodeSteps({epoch(), moves_.steps()})});
}

// Some hear of it at once, and others by gossip: so a small cluster goes from step to step without waiting.
void Membership::TellSteps(MembershipOutbox& out) {
  std::vector<const NodeInfoValue*> others;
  for (const auto& [id, info] : book_.nodes()) {
    if (id != self() && !HasLeft(id) && layouts().HasMember(id)) others.push_back(&info);
  }
  const control::Hello hello = MakeHello(/*answer_wanted=*/false);
  for (size_t i = 0; i < kTellAtOnce && !others.empty(); ++i) {
    std::swap(others[Random() % others.size()], others.back());
    SendTo({others.back()->id, others.back()->peer_address}, hello, out);
    others.pop_back();
  }
}

// It was a member, is none of any active layout, and never will be again.
bool Membership::HasLeft(NodeId node) const {
  if (!view() || !std::ranges::binary_search(view()->layout.removed, node)) return false;
  return !layouts().HasMember(node);
}

// What others say of such a node is not taken; it is known for as long as it says something itself, which it
// does while it hands over what is left with it.
void Membership::ForgetLeavers(Now now) {
  std::vector<NodeId> gone;
  for (const auto& [id, info] : book_.nodes()) {
    if (id == self() || !HasLeft(id)) continue;
    const std::optional<Micros> heard = book_.last_heard(id);
    if (!heard || now.steady - *heard >= kForgetAfter) gone.push_back(id);
  }
  for (const NodeId node : gone) book_.Forget(node);
}

std::string Membership::removed() const {
  if (!HasLeft(self())) return "";
  return "this node (" + ToString(self()) + ") was removed from the cluster, as the layout of epoch " +
         std::to_string(epoch()) +
         " says, and never joins again; remove its data directory, identity included, to start as a new node";
}

// A node that leaves in order stays up to hand over what is left with it, until it is stopped. One that
// learns it only afterwards has missed how it left, and has nothing to do any more.
void Membership::NoticeRemoval(MembershipOutbox& out) {
  if (!view() || removal_said_) return;
  if (!HasLeft(self())) {
    left_in_order_ = std::ranges::binary_search(view()->layout.removed, self());
    return;
  }
  if (!left_in_order_) {
    removal_said_ = true;
    out.removed = removed();
    return;
  }
  const bool votes = std::ranges::binary_search(view()->layout.voters, self());
  if (votes || !moves_.LaneIsDone(lane_)) return;
  removal_said_ = true;
  out.log.push_back("This node has left the cluster and handed over all it had: it may be stopped.");
}

}  // namespace gyre
