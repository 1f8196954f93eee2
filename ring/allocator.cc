// The `hashed` allocator.
#include "ring/allocator.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "ring/ring.h"

namespace gyre {

size_t TokensOfWeight(uint32_t weight) {
  return std::min(size_t{weight} * kTokensPerWeight, Ring::kTokensPerMemberMax);
}

std::vector<Token> HashedTokens(NodeId node, size_t count) {
  assert(node);
  assert(count <= Ring::kTokensPerMemberMax);
  const std::string prefix = ToString(node) + '#';
  std::vector<Token> tokens;
  tokens.reserve(count);
  for (size_t i = 0; i < count; ++i) tokens.push_back(TokenOf(prefix + std::to_string(i)));
  std::ranges::sort(tokens);
  tokens.erase(std::ranges::unique(tokens).begin(), tokens.end());
  return tokens;
}

}  // namespace gyre
