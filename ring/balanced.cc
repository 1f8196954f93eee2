// Who needs tokens and how many; the best places for a newcomer's.
#include "ring/balanced.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "ring/balanced_place.h"
#include "ring/balanced_shift.h"
#include "ring/balanced_start.h"
#include "ring/best_share.h"
#include "ring/token_board.h"

namespace gyre {
namespace {

size_t TokensFor(uint32_t weight, size_t per_weight) {
  return std::min(size_t{weight} * per_weight, Ring::kTokensPerMemberMax);
}

// Tokens for a unit of weight, as the ring has them now: a newcomer with far fewer tokens than the others
// could not reach its share.
size_t PerWeight(std::span<const Member> before) {
  size_t tokens = 0;
  size_t weights = 0;
  for (const Member& member : before) {
    if (member.tokens.empty() || member.tokens.size() >= Ring::kTokensPerMemberMax) continue;
    tokens += member.tokens.size();
    weights += member.weight;
  }
  return weights == 0 ? kBalancedTokensPerWeight : std::max(size_t{1}, (tokens + weights / 2) / weights);
}

// REQUIRES: `members` is ordered by id.
const Member* Find(std::span<const Member> members, NodeId id) {
  const auto found = std::ranges::lower_bound(members, id, {}, &Member::id);
  return found == members.end() || found->id != id ? nullptr : &*found;
}

std::vector<size_t> CountsOf(std::span<const Member> before, std::span<const Member> after) {
  const size_t per_weight = PerWeight(before);
  std::vector<size_t> counts;
  for (const Member& member : after) {
    const Member* const was = Find(before, member.id);
    const bool as_it_is =
        member.weight > 0 && !member.tokens.empty() && (was == nullptr || was->weight == member.weight);
    counts.push_back(as_it_is ? member.tokens.size() : TokensFor(member.weight, per_weight));
  }
  return counts;
}

// What must move at least: what members lack of the best, were they at the best of before.
Units IdealMovement(std::span<const Member> before, std::span<const Member> after, size_t replicas) {
  const std::vector<Positions> were = BestShares(before, replicas);
  const std::vector<Positions> are = BestShares(after, replicas);
  Positions moved = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    const Member* const was = Find(before, after[i].id);
    const Positions had = was == nullptr ? 0 : were[static_cast<size_t>(was - before.data())];
    if (are[i] > had) moved += are[i] - had;
  }
  return static_cast<Units>(moved >> kPositionBitsPerUnit);
}

// Some of a whole, in thousandths.
Units Thousandths(Units whole, Units thousandths) {
  return static_cast<Units>(UnitsSquared{whole} * thousandths / 1000);
}

// A change of the members that have tokens and keep some. REQUIRES: all are ordered by id.
class Change {
 public:
  Change(std::span<const Member> before, std::span<Member> after, std::span<const Units> best,
         size_t replicas)
      : before_(before), after_(after), best_(best), replicas_(replicas), board_(after, replicas) {
    for (const Member& was : before) {
      const Member* const is = Find(after, was.id);
      index_.push_back(is == nullptr ? kNoMember : static_cast<MemberIndex>(is - after.data()));
    }
  }

  void Make(std::span<const size_t> counts) {
    size_t to_place = 0;
    bool gives_up = std::ranges::count(index_, kNoMember) > 0;
    for (size_t i = 0; i < after_.size(); ++i) {
      const size_t has = after_[i].tokens.size();
      if (has < counts[i]) to_place += counts[i] - has;
      if (has > counts[i]) gives_up = true;
    }
    Placing placing(board_, best_, replicas_, to_place);
    for (size_t i = 0; i < after_.size(); ++i) {
      const size_t has = after_[i].tokens.size();
      if (has > counts[i]) placing.Remove(static_cast<MemberIndex>(i), has - counts[i]);
    }
    for (size_t i = 0; i < after_.size(); ++i) {
      const size_t has = after_[i].tokens.size();
      if (has < counts[i]) placing.Add(static_cast<MemberIndex>(i), counts[i] - has);
    }
    Even(placing, gives_up);
    for (size_t i = 0; i < after_.size(); ++i)
      after_[i].tokens = board_.TokensOf(static_cast<MemberIndex>(i));
  }

 private:
  bool FullerThan(Units thousandths) const {
    for (size_t i = 0; i < best_.size(); ++i) {
      if (board_.ShareOf(static_cast<MemberIndex>(i)) > Thousandths(best_[i], thousandths)) return true;
    }
    return false;
  }

  // Where members had tokens that are no one's now.
  std::vector<Token> Vacated() const {
    std::vector<Token> vacated;
    for (const Member& was : before_) {
      for (const Token token : was.tokens) {
        if (board_.slot(board_.ArcOf(token)).token != token) vacated.push_back(token);
      }
    }
    return vacated;
  }

  // What the tokens of those who come or go leave uneven.
  void Even(Placing& placing, bool gives_up) {
    if (before_.empty() || !FullerThan(gives_up ? kNearEnough : kFull)) return;
    const TokenBoard was(before_, replicas_);
    const Units ideal = IdealMovement(before_, after_, replicas_);
    if (gives_up && FullerThan(kFull)) placing.HandOver(Vacated(), ideal / 32);
    Shifting shifting(board_, best_, {was, index_}, ideal + Thousandths(ideal, 80));
    for (const Units goal : {1100, 1050, 1030, 1020, 1010}) shifting.Level(goal, 0);
    for (const Units goal : {1100, 1080, 1060, 1050, 1040, 1030}) shifting.Level(goal, 1);
    if (!gives_up) return;
    shifting.Allow(Thousandths(ideal, 170));
    for (const Units goal : {1100, 1080, 1060, 1045}) shifting.Level(goal, 1);
  }

  static constexpr Units kNearEnough = 1010;
  static constexpr Units kFull = 1030;

  const std::span<const Member> before_;
  const std::span<Member> after_;
  const std::span<const Units> best_;
  const size_t replicas_;
  TokenBoard board_;
  std::vector<MemberIndex> index_;  // of each member before in `after_`; kNoMember if it leaves
};

}  // namespace

size_t BalancedTokensOfWeight(uint32_t weight) { return TokensFor(weight, kBalancedTokensPerWeight); }

std::vector<Member> BalancedTokens(std::span<const Member> before, std::vector<Member> after,
                                   size_t replicas) {
  assert(replicas >= 1);
  assert(replicas <= Ring::kPreferencesMax);
  std::vector<Member> sorted_before(before.begin(), before.end());
  std::ranges::sort(sorted_before, {}, &Member::id);
  std::vector<size_t> order(after.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return after[i].id; });
  std::vector<Member> members;
  for (const size_t i : order) members.push_back(std::move(after[i]));

  const std::vector<size_t> counts = CountsOf(sorted_before, members);
  const size_t holders = members.size() - static_cast<size_t>(std::ranges::count(counts, size_t{0}));
  const size_t balanced = std::max(size_t{1}, std::min(replicas, holders == 0 ? 0 : holders - 1));
  std::vector<Units> best;
  for (const Positions share : BestShares(members, balanced)) {
    best.push_back(static_cast<Units>(share >> kPositionBitsPerUnit));
  }
  bool new_ring = true;
  for (size_t i = 0; i < members.size(); ++i) {
    if (counts[i] > 0 && !members[i].tokens.empty()) new_ring = false;
  }
  if (!new_ring) {
    Change(sorted_before, members, best, balanced).Make(counts);
  } else {
    for (Member& member : members) member.tokens.clear();
    if (holders > 0) PlaceFirstTokens(members, counts, best, balanced);
  }
  for (size_t i = 0; i < order.size(); ++i) after[order[i]] = std::move(members[i]);
  return after;
}

}  // namespace gyre
