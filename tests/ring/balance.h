// How even a ring is and what a change of it moves, for tests and benchmarks of the allocators.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ring/allocator.h"
#include "ring/balanced.h"
#include "ring/best_share.h"
#include "ring/ownership.h"
#include "ring/ring.h"
#include "ring/ring_diff.h"

namespace gyre {

// Members 1 to `count`, without tokens: dealt in turn to so many zones, and to the weights 1, 2, 3 if
// `mixed`.
struct Fleet {
  size_t count;
  size_t zones = 1;
  bool mixed = false;
};

// Of each count: with one zone and with three, with equal weights and with mixed ones.
inline std::vector<Fleet> Fleets(const std::vector<size_t>& counts) {
  std::vector<Fleet> fleets;
  for (const size_t count : counts) {
    for (const size_t zones : {1, 3}) {
      for (const bool mixed : {false, true}) fleets.push_back({count, zones, mixed});
    }
  }
  return fleets;
}

inline Member FleetMember(const Fleet& fleet, size_t i) {
  return {.id = NodeId{i + 1},
          .zone = std::string("z").append(std::to_string(i % fleet.zones)),
          .weight = fleet.mixed ? static_cast<uint32_t>(1 + (i + i / 3) % 3) : 1,
          .tokens = {}};
}

inline std::vector<Member> MembersOf(const Fleet& fleet) {
  std::vector<Member> members;
  for (size_t i = 0; i < fleet.count; ++i) members.push_back(FleetMember(fleet, i));
  return members;
}

inline std::vector<Member> Hashed(std::vector<Member> members) {
  for (Member& member : members) member.tokens = HashedTokens(member.id, TokensOfWeight(member.weight));
  return members;
}

inline Ring Built(std::vector<Member> members) {
  auto ring = Ring::Build(std::move(members));
  if (!ring.ok()) std::abort();
  return *std::move(ring);
}

struct Evenness {
  double owned = 0;  // the largest owned share, relative to the fair one by weight
  double best_to_fair =
      0;  // the largest of the best possible replicated shares, relative to the fair one by weight
  double to_best = 0;  // the largest replicated share, relative to the best possible one of that member
};

inline Evenness EvennessOf(const std::vector<Member>& members, size_t replicas) {
  const Ring ring = Built(members);
  const std::vector<Share> shares = SharesOf(ring, replicas);
  const std::vector<Member> sorted(ring.members().begin(), ring.members().end());
  const std::vector<Positions> best = BestShares(sorted, replicas);
  double weights = 0;
  for (const Member& member : sorted) weights += member.weight;
  Evenness even;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].weight == 0) continue;
    const double fair = sorted[i].weight / weights;
    const double fair_replicated = fair * static_cast<double>(std::min(replicas, sorted.size()));
    even.owned = std::max(even.owned, FractionOf(shares[i].owned) / fair);
    even.best_to_fair = std::max(even.best_to_fair, FractionOf(best[i]) / fair_replicated);
    even.to_best = std::max(even.to_best, FractionOf(shares[i].replicated) / FractionOf(best[i]));
  }
  return even;
}

struct Movement {
  double all = 0;         // replicas that change hands: 1 is one whole ring of keys
  double to_stayers = 0;  // of these, onto members that were there before
  double ideal = 0;       // what members lack of the best shares, were they at the best before
  double relative() const { return ideal == 0 ? 1 : all / ideal; }
};

inline Movement MovementOf(const std::vector<Member>& before, const std::vector<Member>& after,
                           size_t replicas) {
  Movement movement;
  std::map<NodeId, Positions> had;
  const std::vector<Positions> best_before = BestShares(before, replicas);
  for (size_t i = 0; i < before.size(); ++i) had[before[i].id] = best_before[i];
  const Ring from = Built(before);
  const Ring to = Built(after);
  for (const RingChange& change : DiffRings({from, replicas}, {to, replicas})) {
    for (const Replacement& replacement : change.replacements) {
      if (!replacement.newcomer) continue;
      movement.all += FractionOf(change.width());
      if (had.contains(replacement.newcomer)) movement.to_stayers += FractionOf(change.width());
    }
  }
  const std::vector<Positions> best_after = BestShares(after, replicas);
  for (size_t i = 0; i < after.size(); ++i) {
    const auto was = had.find(after[i].id);
    const Positions before_best = was == had.end() ? 0 : was->second;
    if (best_after[i] > before_best) movement.ideal += FractionOf(best_after[i] - before_best);
  }
  return movement;
}

// With how many others a member shares a range of keys, on average.
inline double NeighboursOf(const std::vector<Member>& members, size_t replicas) {
  const Ring ring = Built(members);
  std::set<std::pair<MemberIndex, MemberIndex>> pairs;
  for (size_t arc = 0; arc < ring.arc_count(); ++arc) {
    const auto primaries = ring.PrimariesOfArc(arc, replicas);
    for (const MemberIndex one : primaries) {
      for (const MemberIndex other : primaries) {
        if (one != other) pairs.emplace(one, other);
      }
    }
  }
  return static_cast<double>(pairs.size()) / static_cast<double>(members.size());
}

}  // namespace gyre
