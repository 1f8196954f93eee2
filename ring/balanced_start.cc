// An order of owners in which replicas are apart, and then the widths of their arcs.
#include "ring/balanced_start.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace gyre {
namespace {

struct Turn {
  uint64_t when;
  MemberIndex member;
  auto operator<=>(const Turn&) const = default;
};

// Each member's turns, spread evenly over the ring but for a part of a step that a hash decides: so the order
// of neighbours differs from place to place, and what a node leaves behind falls to many.
std::vector<Turn> TurnsOf(std::span<const Member> members, std::span<const size_t> counts) {
  std::vector<Turn> turns;
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string prefix = ToString(members[i].id) + '#';
    for (uint64_t turn = 0; turn < counts[i]; ++turn) {
      const uint64_t part = TokenOf(prefix + std::to_string(turn)).value >> 32;
      turns.push_back({((turn << 32 | part) << 16) / counts[i], static_cast<MemberIndex>(i)});
    }
  }
  std::ranges::sort(turns);
  return turns;
}

// Puts off turns so that the next owner, if one within reach can, is none of the last replicas - 1 and in
// none of their zones: then each token brings its owner all the arcs that it could.
std::vector<MemberIndex> KeptApart(std::span<const Turn> turns, std::span<const Member> members,
                                   size_t replicas) {
  constexpr size_t kReach = 64;
  std::vector<MemberIndex> order;
  std::vector<MemberIndex> waiting;
  size_t next = 0;
  const auto among_last = [&](size_t count, auto same) {
    const size_t last = std::min(count, order.size());
    return std::any_of(order.end() - static_cast<ptrdiff_t>(last), order.end(), same);
  };
  std::set<std::string_view> zones;
  for (const Member& member : members) zones.insert(member.zone);
  const size_t apart = replicas - 1;
  const size_t zones_apart = std::min(apart, zones.size() - 1);
  while (order.size() < turns.size()) {
    while (waiting.size() < kReach && next < turns.size()) waiting.push_back(turns[next++].member);
    const auto new_member = [&](MemberIndex member) {
      return !among_last(apart, [&](MemberIndex other) { return other == member; });
    };
    const auto new_zone = [&](MemberIndex member) {
      return new_member(member) && !among_last(zones_apart, [&](MemberIndex other) {
               return members[other].zone == members[member].zone;
             });
    };
    auto chosen = std::ranges::find_if(waiting, new_zone);
    if (chosen == waiting.end()) chosen = std::ranges::find_if(waiting, new_member);
    if (chosen == waiting.end()) chosen = waiting.begin();
    order.push_back(*chosen);
    waiting.erase(chosen);
  }
  return order;
}

// Generalized iterative scaling (Darroch and Ratcliff, 1972): each arc grows or shrinks by what its primaries
// together lack or have too much, until the shares are the wanted ones or as near as the order allows.
void Scale(std::vector<Units>& widths, const TokenBoard& board, std::span<const Units> best) {
  constexpr int kRoundsMax = 400;
  constexpr int kOneBits = 30;
  constexpr Units kOne = Units{1} << kOneBits;
  constexpr Units kNearEnough = kOne / 2000;
  const Units least = kAllUnits / static_cast<Units>(16 * widths.size()) + 1;
  std::vector<Units> factors(best.size());
  for (int round = 0; round < kRoundsMax; ++round) {
    std::vector<Units> shares(best.size());
    for (size_t i = 0; i < widths.size(); ++i) {
      for (const MemberIndex member : board.PrimariesOf(i).members()) shares[member] += widths[i];
    }
    Units worst = 0;
    for (size_t i = 0; i < best.size(); ++i) {
      if (shares[i] == 0) continue;
      const auto lack = static_cast<Units>((UnitsSquared{best[i]} - shares[i]) * kOne / shares[i]);
      worst = std::max(worst, std::abs(lack));
      factors[i] = kOne + lack / static_cast<Units>(board.PrimariesOf(0).members().size());
    }
    if (worst < kNearEnough) return;
    UnitsSquared sum = 0;
    for (size_t i = 0; i < widths.size(); ++i) {
      UnitsSquared width = widths[i];
      for (const MemberIndex member : board.PrimariesOf(i).members()) {
        width = std::min((width * factors[member]) >> kOneBits, UnitsSquared{kAllUnits});
      }
      widths[i] = std::max(static_cast<Units>(width), least);
      sum += widths[i];
    }
    for (Units& width : widths) width = static_cast<Units>(UnitsSquared{width} * kAllUnits / sum);
  }
}

// Tokens at the ends of arcs of these widths.
void PlaceInOrder(std::span<Member> members, std::span<const MemberIndex> order,
                  std::span<const Units> widths) {
  Units end = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    end += widths[i];
    members[order[i]].tokens.push_back(Token{(static_cast<uint64_t>(end) << kPositionBitsPerUnit) - 1});
  }
}

}  // namespace

void PlaceFirstTokens(std::span<Member> members, std::span<const size_t> counts, std::span<const Units> best,
                      size_t replicas) {
  const std::vector<MemberIndex> order = KeptApart(TurnsOf(members, counts), members, replicas);
  std::vector<Units> widths(order.size(), kAllUnits / static_cast<Units>(order.size()));
  std::vector<Member> even(members.begin(), members.end());
  PlaceInOrder(even, order, widths);
  Scale(widths, TokenBoard(even, replicas), best);
  PlaceInOrder(members, order, widths);
}

}  // namespace gyre
