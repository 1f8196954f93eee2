// Membership: changes that no operator asks for. Every node would make them; so that they seldom get in each
// other's way, the living with the lowest ids do it first.
#include <algorithm>
#include <utility>

#include "server/core/layout_line.h"
#include "server/core/membership.h"

namespace gyre {
namespace {

constexpr Micros kTurn = Millis(500);  // that a node gives each living member with a lower id
constexpr size_t kTurnsMax = 20;
constexpr Micros kDeadline = Seconds(4);
constexpr Micros kHeardLately = Seconds(10);

}  // namespace

void Membership::DoUnasked(Now now, MembershipOutbox& out) {
  if (!view() || !changes_.empty()) return;
  std::optional<LayoutChange::What> what = Unasked(now);
  if (!what) {
    intent_.reset();
    return;
  }
  if (!intent_ || intent_->kind != what->index() || intent_->epoch != epoch()) {
    intent_ = Intent{what->index(), epoch(), now.steady};
  }
  const auto turns = static_cast<int64_t>(std::min(RankAmongLiving(), kTurnsMax));
  if (now.steady - intent_->since < Micros{kTurn.value * turns}) return;
  intent_->since = now.steady + kDeadline;  // then again
  changes_.push_back({.change = {.ticket = 0, .deadline = now.steady + kDeadline, .what = *std::move(what)},
                      .unasked = true});
  Propose(now, out);
}

std::optional<LayoutChange::What> Membership::Unasked(Now now) const {
  const Layout& layout = view()->layout;
  const bool votes = std::ranges::binary_search(layout.voters, self());
  if (moves_.moving()) {
    // Once one voter has accepted an abort it waits for the end of it; whoever proposed it may be dead.
    const bool begun = acceptor_.accepted && acceptor_.accepted->abort;
    if (begun && !moves_.committed() && !moves_.AbortIsImpossible())
      return LayoutChange::Abort{acceptor_.accepted->lost};
    return std::nullopt;
  }
  const bool member = view()->ring.IndexOf(self()) >= 0;
  if (layout.voters != MembersOf(layout)) {
    return member || votes ? std::optional<LayoutChange::What>(LayoutChange::Finish{}) : std::nullopt;
  }
  // With a next layout this node has a vote again; else the store of one more voter may not be lost.
  if (votes && Abstains() && abstention_->known) return LayoutChange::Finish{.renew = true};
  return Join(now);
}

// The next node that is no member, if they join by themselves.
std::optional<LayoutChange::What> Membership::Join(Now now) const {
  // After an operator went back from a change nobody undoes that by himself.
  if (!config_.auto_join || view()->layout.abort || RankAmongLiving() > 0) return std::nullopt;
  if (view()->ring.IndexOf(self()) < 0) return std::nullopt;
  const std::vector<NodeId>& removed = view()->layout.removed;
  for (const auto& [id, info] : book_.nodes()) {
    if (id == self() || view()->ring.IndexOf(id) >= 0 || std::ranges::binary_search(removed, id)) continue;
    const std::optional<Micros> heard = book_.last_heard(id);
    if (!heard || now.steady - *heard >= kHeardLately) continue;
    MemberChanges changes;
    changes.add.push_back({.node = id, .zone = info.zone, .weight = info.weight});
    return LayoutChange::Members{
        .changes = std::move(changes), .base_digest = view()->digest, .base_epoch = epoch()};
  }
  return std::nullopt;
}

// Nobody waits for the answer, so the log has it: once, until it is another one.
void Membership::TellOfUnasked(const absl::Status& status, MembershipOutbox& out) {
  const std::string sentence =
      status.ok()
          ? ""
          : "A change of the layout that nodes make by themselves (a new node joins, or the members become "
            "voters) was not made; it is tried again: " +
                std::string(status.message());
  if (std::exchange(unasked_said_, sentence) != sentence && !sentence.empty()) out.log.push_back(sentence);
}

size_t Membership::RankAmongLiving() const {
  const auto before = [&](const Member& member) {
    return member.id < self() && !detector_.Suspects(member.id);
  };
  return static_cast<size_t>(std::ranges::count_if(view()->layout.members, before));
}

}  // namespace gyre
