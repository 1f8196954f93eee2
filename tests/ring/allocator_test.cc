// The hashed allocator: how many tokens, which, and that weight becomes load.
#include "ring/allocator.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/ring/rings.h"

namespace gyre {
namespace {

TEST(TokensOfWeight, IsProportionalUpToTheLimit) {
  EXPECT_EQ(TokensOfWeight(0), 0u);
  EXPECT_EQ(TokensOfWeight(1), 128u);
  EXPECT_EQ(TokensOfWeight(3), 384u);
  EXPECT_EQ(TokensOfWeight(32), 4096u);
  EXPECT_EQ(TokensOfWeight(33), Ring::kTokensPerMemberMax);
  EXPECT_EQ(TokensOfWeight(UINT32_MAX), Ring::kTokensPerMemberMax);
}

TEST(HashedTokens, AreTheHashesOfIdAndNumberSorted) {
  std::vector<Token> expected = {TokenOf("00000000000000ab#0"), TokenOf("00000000000000ab#1"),
                                 TokenOf("00000000000000ab#2")};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(HashedTokens(NodeId{0xab}, 3), expected);
  EXPECT_EQ(HashedTokens(NodeId{0xab}, 0), std::vector<Token>{});
}

TEST(HashedTokens, AreAscendingAndOnlyGrow) {
  std::vector<Token> fewer;
  for (const size_t count : {1, 10, 128, 4096}) {
    const std::vector<Token> tokens = HashedTokens(NodeId{5}, count);
    EXPECT_EQ(tokens.size(), count);
    EXPECT_EQ(std::ranges::adjacent_find(tokens, std::ranges::greater_equal()), tokens.end());
    EXPECT_TRUE(std::ranges::includes(tokens, fewer));
    fewer = tokens;
  }
}

// Keys on a node of weight 2 for each key on a node of weight 1, the two alone, with 256 tokens for each
// unit.
double KeysOnTheHeavierPerKeyOnTheLighter(uint64_t light, uint64_t heavy,
                                          const std::vector<std::string>& keys) {
  const Ring ring = RingOf({HashedNode(light, 256), HashedNode(heavy, 512)});
  const int heavier = ring.IndexOf(NodeId{heavy});
  const auto on_heavier = std::ranges::count_if(
      keys, [&](const std::string& key) { return ring.Preferences(TokenOf(key)).front() == heavier; });
  return static_cast<double>(on_heavier) /
         (static_cast<double>(keys.size()) - static_cast<double>(on_heavier));
}

TEST(Weight, TwiceTheWeightGetsTwiceTheKeys) {
  const std::vector<std::string> keys = Keys(100000);
  const double ratio = KeysOnTheHeavierPerKeyOnTheLighter(1, 2, keys);
  EXPECT_GT(ratio, 1.8);
  EXPECT_LT(ratio, 2.2);
}

// One pair may be lucky; over many pairs the mean is what counts.
TEST(Weight, TwiceTheWeightGetsTwiceTheKeysOnAverage) {
  const std::vector<std::string> keys = Keys(20000);
  double sum = 0;
  for (uint64_t pair = 0; pair < 50; ++pair) {
    sum += KeysOnTheHeavierPerKeyOnTheLighter(2 * pair + 1, 2 * pair + 2, keys);
  }
  EXPECT_NEAR(sum / 50, 2.0, 0.04);
}

}  // namespace
}  // namespace gyre
