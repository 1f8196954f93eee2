// The `hashed` allocator: a node's tokens are a function of its id alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ring/token.h"

namespace gyre {

// So many tokens spread the load to within some 20 % of even; see the table in ring/README.md.
inline constexpr size_t kTokensPerWeight = 128;

// The number of tokens for a member of this weight: kTokensPerWeight for each unit, at most
// Ring::kTokensPerMemberMax.
size_t TokensOfWeight(uint32_t weight);

// The XXH3-64 of "<id as sixteen hexadecimal digits>#<i>" for each i < count, sorted. A repeated token is
// kept once, so there may be fewer than `count`. The tokens for a smaller count are among those for a larger
// one, so a change of weight moves no more keys than it must. REQUIRES: `node` names a node, and count <=
// Ring::kTokensPerMemberMax.
std::vector<Token> HashedTokens(NodeId node, size_t count);

}  // namespace gyre
