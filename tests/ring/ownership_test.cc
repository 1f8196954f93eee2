// Shares of the ring are exact: they sum to whole rings, to the last position.
#include "ring/ownership.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "ring/token_range.h"
#include "tests/ring/rings.h"

namespace gyre {
namespace {

TEST(TokenRange, ContainsItsEndAndNotItsBegin) {
  const TokenRange range{Token{10}, Token{20}};
  EXPECT_FALSE(range.Contains(Token{10}));
  EXPECT_TRUE(range.Contains(Token{11}));
  EXPECT_TRUE(range.Contains(Token{20}));
  EXPECT_FALSE(range.Contains(Token{21}));
  EXPECT_TRUE(range.width() == 10);
}

TEST(TokenRange, Wraps) {
  const TokenRange range{Token{kLast - 1}, Token{1}};
  EXPECT_FALSE(range.Contains(Token{kLast - 1}));
  for (const uint64_t token : {kLast, uint64_t{0}, uint64_t{1}}) EXPECT_TRUE(range.Contains(Token{token}));
  EXPECT_FALSE(range.Contains(Token{2}));
  EXPECT_TRUE(range.width() == 3);
}

TEST(TokenRange, WithEqualEndsIsTheWholeRing) {
  for (const TokenRange range : {TokenRange{Token{5}, Token{5}}, kWholeRing}) {
    for (const uint64_t token : {uint64_t{0}, uint64_t{5}, uint64_t{6}, kLast}) {
      EXPECT_TRUE(range.Contains(Token{token}));
    }
    EXPECT_TRUE(range.width() == kAllPositions);
  }
}

TEST(Shares, OfASmallRing) {
  const Ring ring = RingOf({Node(1, {100}), Node(2, {300}), Node(3, {})});
  const std::vector<Share> shares = SharesOf(ring, 1);
  EXPECT_TRUE(shares[0].owned == kAllPositions - 200);
  EXPECT_TRUE(shares[1].owned == 200);
  EXPECT_TRUE(shares[2].owned == 0);
  EXPECT_TRUE(shares[0].replicated == shares[0].owned);
  EXPECT_TRUE(shares[1].replicated == shares[1].owned);
}

TEST(Shares, ANodeAloneHasTheWholeRingOnce) {
  const std::vector<Share> shares = SharesOf(RingOf({Node(1, {77})}), 3);
  EXPECT_TRUE(shares[0].owned == kAllPositions);
  EXPECT_TRUE(shares[0].replicated == kAllPositions);
}

TEST(Shares, SumToWholeRingsExactly) {
  for (const size_t nodes : {1, 2, 3, 7, 20}) {
    for (const size_t zones : {0, 2, 5}) {
      std::vector<Member> members = HashedNodes(nodes, 16, zones);
      members.push_back(Node(1000, {}));
      const Ring ring = RingOf(members);
      for (size_t replicas = 1; replicas <= Ring::kPreferencesMax; ++replicas) {
        Positions owned = 0;
        Positions replicated = 0;
        for (const Share& share : SharesOf(ring, replicas)) {
          owned += share.owned;
          replicated += share.replicated;
          ASSERT_TRUE(share.owned <= share.replicated);
          ASSERT_TRUE(share.replicated <= kAllPositions);
        }
        ASSERT_TRUE(owned == kAllPositions) << nodes << " nodes, " << replicas << " replicas";
        ASSERT_TRUE(replicated == std::min(nodes, replicas) * kAllPositions)
            << nodes << " nodes, " << replicas << " replicas";
      }
    }
  }
}

TEST(FractionOf, IsOneForTheWholeRing) {
  EXPECT_EQ(FractionOf(0), 0.0);
  EXPECT_EQ(FractionOf(kAllPositions / 4), 0.25);
  EXPECT_EQ(FractionOf(kAllPositions), 1.0);
  EXPECT_EQ(FractionOf(3 * kAllPositions), 3.0);
}

}  // namespace
}  // namespace gyre
