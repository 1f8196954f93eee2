// The `balanced` allocator: tokens chosen for even replicated shares under weights and zones.
//
// Source: after Cassandra's replication-aware allocation (CASSANDRA-7032), which like this one gives a
// newcomer the tokens after which the shares of all are most even; here also zones, the first tokens of a
// whole cluster, weights that change and members that leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ring/ring.h"

namespace gyre {

// So many tokens bring the largest replicated share to within some 5 % of the best; see ring/README.md.
inline constexpr size_t kBalancedTokensPerWeight = 16;

// The number of tokens for a member of this weight in a new ring: kBalancedTokensPerWeight for each unit, at
// most Ring::kTokensPerMemberMax.
size_t BalancedTokensOfWeight(uint32_t weight);

// The members `after` a change, in their order, with the tokens they shall have. `before` are the members as
// they are; empty for a new ring. Only this is looked at:
//
// - A member without tokens gets its first: for each unit of weight as many as those before it have on
//   average, or kBalancedTokensPerWeight in a new ring.
// - A member whose weight differs from that before gets more tokens, or gives some up.
// - All others keep their number of tokens. When members come or grow, the tokens of the others stay where
//   they are and keys move only onto the newcomers, unless that would leave a member more than 3 % above the
//   best. Then, and when members leave or shrink, tokens of the others may move as well, as long as no more
//   than a tenth is moved beyond what must be; or a quarter when members leave and one would stay 5 % above
//   the best.
//
// The aim is BestShares for keys with so many replicas: best the number that most keyspaces have. While there
// are no more members than replicas all hold everything, and it is one replica fewer that is balanced.
//
// A pure function, and the orders of the members do not matter. No two tokens it chooses are equal to each
// other or to one that stays. REQUIRES: ids are distinct within `before` and within `after`, `before` would
// build a Ring or is empty, and 1 <= replicas <= Ring::kPreferencesMax.
std::vector<Member> BalancedTokens(std::span<const Member> before, std::vector<Member> after,
                                   size_t replicas);

}  // namespace gyre
