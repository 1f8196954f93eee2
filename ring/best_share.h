// The most even shares that weights and zones allow: what an allocation of tokens is measured against.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ring/ring.h"
#include "ring/token_range.h"

namespace gyre {

// How the preference lists of a Ring deal the replicas of a key to the zones. The same for every key.
struct ZoneDeal {
  size_t replicas = 0;  // in all
  size_t each = 0;      // from every zone, or all of its members if it has fewer
  size_t extra = 0;     // so many zones, those met first, give one more
  bool operator==(const ZoneDeal&) const = default;
};

// `members` is the number of members of each zone. Deals at most as many replicas as there are members.
ZoneDeal DealTo(std::span<const size_t> members, size_t replicas);

// The replicated share that each member has at best, in the order of `members`; their tokens do not matter,
// and a weight of 0 means a share of 0. In proportion to weight, except that a member holds a key at most
// once and that a zone holds what the preference lists deal to it: what exceeds either goes to the others, in
// proportion to weight again. No ring has a smaller largest share per weight; rings with few tokens only come
// near it. REQUIRES: 1 <= replicas <= Ring::kPreferencesMax.
std::vector<Positions> BestShares(std::span<const Member> members, size_t replicas);

}  // namespace gyre
