// The tokens of a new ring, all at once. Internal to the `balanced` allocator.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ring/ring.h"
#include "ring/token_board.h"

namespace gyre {

// Gives members[i] counts[i] tokens, so that its share comes close to best[i]. REQUIRES: `members` is ordered
// by id and without tokens, the three are equally long, and not all of `counts` are 0.
void PlaceFirstTokens(std::span<Member> members, std::span<const size_t> counts, std::span<const Units> best,
                      size_t replicas);

}  // namespace gyre
