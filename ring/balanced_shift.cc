// A token between two arcs is a valve between two members: the one that only the arc before it has as a
// replica, and the one that only the arc after it has. Shifting it by so many positions hands these over.
#include "ring/balanced_shift.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace gyre {
namespace {

// Whether the member did not hold the keys at `token` before: 1 if so, otherwise 0.
Units Newcomers(const Origin& origin, Token token, MemberIndex member) {
  const TokenBoard& before = origin.board;
  const auto were = before.PrimariesOf(before.ArcOf(token)).members();
  return std::ranges::none_of(were, [&](MemberIndex was) { return origin.index[was] == member; });
}

// One way to turn one valve.
struct Shift {
  size_t slot;
  bool forward;    // clockwise: the arc of `slot` grows
  Units room = 0;  // until a token of either board, or an end of the number line
  MemberIndex from;
  MemberIndex to;
  Units cost = 0;  // movement for each unit shifted; negative if keys go back to where they are
};

// Kept free between two tokens.
constexpr Units kApart = 16;

Units UnitsBetween(Token begin, Token end) {
  return static_cast<Units>((end.value - begin.value) >> kPositionBitsPerUnit);
}

// How far a token may be shifted: to the next one that it may not pass.
Units UntilBlocked(const TokenBoard& board, size_t slot, bool forward) {
  const auto next = [&](size_t i) { return forward ? board.After(i) : board.Before(i); };
  const MemberIndex member = board.slot(slot).member;
  size_t i = next(slot);
  while (i != slot && board.MayPass(member, board.slot(i).member)) i = next(i);
  if (i == slot) return kAllUnits - 1;
  const Token token = board.slot(slot).token;
  const Token end = board.slot(i).token;
  return forward ? UnitsBetween(token, end) : UnitsBetween(end, token);
}

Shift ShiftOf(const TokenBoard& board, const Origin& origin, size_t slot, bool forward) {
  const Primaries& behind = board.PrimariesOf(slot);
  const Primaries& ahead = board.PrimariesOf(board.After(slot));
  const Primaries& grows = forward ? behind : ahead;
  const Primaries& shrinks = forward ? ahead : behind;
  Shift shift{.slot = slot, .forward = forward, .from = shrinks.NotIn(grows), .to = grows.NotIn(shrinks)};
  if (shift.from == kNoMember || shift.to == kNoMember) return shift;
  const Units blocked = UntilBlocked(board, slot, forward) - kApart;
  // Over how many arcs of before the cost is the same; a sliver does not count.
  const TokenBoard& before = origin.board;
  const Token token = board.slot(slot).token;
  size_t arc = before.ArcOf(forward ? Token{token.value + 1} : token);
  bool first = true;
  for (size_t i = 0; i < before.size() && shift.room < blocked; ++i) {
    const Token begin = before.slot(before.Before(arc)).token;
    const Token end = before.slot(arc).token;
    const Units reach = before.size() == 1 ? kAllUnits - 1
                        : forward          ? UnitsBetween(token, end)
                                           : UnitsBetween(begin, token);
    const Units cost = Newcomers(origin, end, shift.to) - Newcomers(origin, end, shift.from);
    if (first && reach > 2 * kApart) {
      shift.cost = cost;
      first = false;
    } else if (!first && cost != shift.cost) {
      break;
    }
    shift.room = reach - kApart;
    arc = forward ? before.After(arc) : before.Before(arc);
  }
  shift.room = std::min(shift.room, blocked);
  return shift;
}

// Fuller, relative to what is best.
bool Fuller(Units share, Units best, Units other_share, Units other_best) {
  return UnitsSquared{share} * other_best > UnitsSquared{other_share} * best;
}

}  // namespace

Units Moved(const Origin& origin, const TokenBoard& board) {
  if (origin.board.size() == 0) return 0;
  std::vector<Token> ends;
  for (size_t i = 0; i < board.size(); ++i) ends.push_back(board.slot(i).token);
  for (size_t i = 0; i < origin.board.size(); ++i) ends.push_back(origin.board.slot(i).token);
  std::ranges::sort(ends);
  ends.erase(std::ranges::unique(ends).begin(), ends.end());
  Units moved = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const Token begin = ends[i == 0 ? ends.size() - 1 : i - 1];
    const Units width = ends.size() == 1 ? kAllUnits : UnitsBetween(begin, ends[i]);
    for (const MemberIndex member : board.PrimariesOf(board.ArcOf(ends[i])).members()) {
      moved += width * Newcomers(origin, ends[i], member);
    }
  }
  return moved;
}

void Shifting::Level(Units goal, Units cost_max) {
  // Each try looks at all slots; together no more than takes a tenth of a second.
  size_t tries = std::min(size_t{4000}, (size_t{1} << 22) / board_.size() + 1);
  std::vector<bool> stuck(best_.size());
  for (; tries > 0; --tries) {
    const MemberIndex fullest = Fullest(stuck);
    if (fullest == kNoMember || Room(fullest, goal) >= 0) return;
    if (ShiftFrom(fullest, goal, cost_max)) {
      stuck.assign(best_.size(), false);
    } else {
      stuck[fullest] = true;
    }
  }
}

// How much more the member may hold; negative if it holds too much.
Units Shifting::Room(MemberIndex member, Units goal) const {
  return static_cast<Units>(UnitsSquared{best_[member]} * goal / 1000) - board_.ShareOf(member);
}

MemberIndex Shifting::Fullest(const std::vector<bool>& without) const {
  MemberIndex fullest = kNoMember;
  for (size_t i = 0; i < best_.size(); ++i) {
    if (best_[i] == 0 || without[i]) continue;
    const auto member = static_cast<MemberIndex>(i);
    if (fullest == kNoMember ||
        Fuller(board_.ShareOf(member), best_[i], board_.ShareOf(fullest), best_[fullest])) {
      fullest = member;
    }
  }
  return fullest;
}

// Makes the cheapest shift from a member that is too full; of those that cost the same, to the emptiest
// member.
bool Shifting::ShiftFrom(MemberIndex from, Units goal, Units cost_max) {
  const Units least = best_[from] / 4000;  // less is not worth a shift
  std::optional<Shift> chosen;
  for (size_t slot = 0; slot < board_.size(); ++slot) {
    const bool behind = board_.PrimariesOf(slot).Has(from);
    const bool ahead = board_.PrimariesOf(board_.After(slot)).Has(from);
    if (behind == ahead) continue;
    Shift shift = ShiftOf(board_, origin_, slot, ahead);
    if (shift.to == kNoMember || shift.cost > cost_max) continue;
    shift.room = std::min({shift.room, -Room(from, goal), Room(shift.to, goal)});
    if (shift.cost > 0) shift.room = std::min(shift.room, left_ / shift.cost);
    if (shift.room <= least) continue;
    if (!chosen || shift.cost < chosen->cost ||
        (shift.cost == chosen->cost &&
         Fuller(board_.ShareOf(chosen->to), best_[chosen->to], board_.ShareOf(shift.to), best_[shift.to]))) {
      chosen = shift;
    }
  }
  if (!chosen) return false;
  const uint64_t positions = static_cast<uint64_t>(chosen->room) << kPositionBitsPerUnit;
  const uint64_t token = board_.slot(chosen->slot).token.value;
  Token to{chosen->forward ? token + positions : token - positions};
  while (board_.slot(board_.ArcOf(to)).token == to)
    to.value += chosen->forward ? ~uint64_t{0} : 1;  // one back
  board_.Move(chosen->slot, to);
  left_ -= chosen->room * chosen->cost;
  return true;
}

}  // namespace gyre
