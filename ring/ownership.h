// How much of the ring each member holds, exactly.
#pragma once

#include <cstddef>
#include <vector>

#include "ring/ring.h"
#include "ring/token_range.h"

namespace gyre {

// What one member holds, in positions of the ring.
struct Share {
  Positions owned = 0;       // as the first in the preference list
  Positions replicated = 0;  // as one of the primary replicas, the first included
  bool operator==(const Share&) const = default;
};

// The share of each member, by its index. With N = min(replicas, members with tokens), the owned shares sum
// to exactly 2^64 and the replicated ones to exactly N * 2^64. REQUIRES: 1 <= replicas <=
// Ring::kPreferencesMax.
std::vector<Share> SharesOf(const Ring& ring, size_t replicas);

// The part of the ring that so many positions are, for display: 1.0 is one whole ring.
double FractionOf(Positions positions);

}  // namespace gyre
