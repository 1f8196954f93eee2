// What differs between two rings, exactly: which ranges of tokens change hands, and from whom to whom.
#pragma once

#include <cstddef>
#include <vector>

#include "ring/ring.h"
#include "ring/token_range.h"

namespace gyre {

// Where a keyspace lies: a ring, and how many replicas it wants there.
// REQUIRES: 1 <= replicas <= Ring::kPreferencesMax. The ring outlives the call.
struct Placement {
  const Ring& ring;
  size_t replicas;
};

// One replica of a range that changes hands.
struct Replacement {
  NodeId leaver;    // 0 when the range gains a replica and none leaves for it
  NodeId newcomer;  // 0 when the range loses a replica and none comes for it
  bool operator==(const Replacement&) const = default;
};

// A maximal range with one change. The lists are in order of preference.
struct RingChange : TokenRange {
  std::vector<NodeId> before;
  std::vector<NodeId> after;
  // The n-th leaver, in the order of `before`, pairs with the n-th newcomer, in the order of `after`. Empty
  // when only the order of preference changes, so that no data moves.
  std::vector<Replacement> replacements;

  bool owner_changes() const { return before.front() != after.front(); }
  bool operator==(const RingChange&) const = default;
};

// The changes, ordered by `end`; only the first range may wrap. Tokens in no range have the same list in
// both. A pure function: whoever holds both rings gets the same answer.
std::vector<RingChange> DiffRings(Placement before, Placement after);

}  // namespace gyre
