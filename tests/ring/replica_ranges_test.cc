// Replica ranges cover the ring exactly once, are right everywhere, and are as long as they can be.
#include "ring/replica_ranges.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "tests/ring/rings.h"

namespace gyre {
namespace {

std::vector<MemberIndex> SetAt(const Ring& ring, Token token, size_t replicas) {
  const auto primaries = ring.PrimariesOfArc(ring.ArcOf(token), replicas);
  std::vector<MemberIndex> members(primaries.begin(), primaries.end());
  std::sort(members.begin(), members.end());
  return members;
}

void Check(const Ring& ring, size_t replicas) {
  const std::vector<ReplicaRange> ranges = ReplicaRangesOf(ring, replicas);
  ASSERT_FALSE(ranges.empty());
  Positions covered = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const ReplicaRange& next = ranges[(i + 1) % ranges.size()];
    ASSERT_EQ(ranges[i].end, next.begin) << "a gap or an overlap";
    if (i + 1 < ranges.size()) {
      ASSERT_LT(ranges[i].end, next.end);
    }
    if (ranges.size() > 1) {
      ASSERT_NE(ranges[i].members, next.members) << "not as long as it can be";
    }
    covered += ranges[i].width();
  }
  ASSERT_TRUE(covered == kAllPositions);
  for (const Token token : TellingTokens(ring)) {
    const auto found = std::ranges::find_if(ranges, [&](const ReplicaRange& r) { return r.Contains(token); });
    ASSERT_NE(found, ranges.end());
    ASSERT_EQ(found->members, SetAt(ring, token, replicas)) << ToString(token);
  }
}

TEST(ReplicaRanges, AreRightAndMaximal) {
  for (const size_t nodes : {1, 2, 3, 4, 9}) {
    for (const size_t zones : {0, 2, 3}) {
      const Ring ring = RingOf(HashedNodes(nodes, 12, zones));
      for (size_t replicas = 1; replicas <= 8; ++replicas) Check(ring, replicas);
    }
  }
}

TEST(ReplicaRanges, AreOneWhenAllNodesHoldEverything) {
  const std::vector<ReplicaRange> expected = {{kWholeRing, {0, 1, 2}}};
  for (const size_t replicas : {3, 4, 8}) {
    EXPECT_EQ(ReplicaRangesOf(RingOf(HashedNodes(3, 12)), replicas), expected);
  }
  EXPECT_EQ(kWholeRing.begin, kWholeRing.end);
}

TEST(ReplicaRanges, MergeAcrossTheWrapAround) {
  const Ring ring = RingOf({Node(1, {100, 400}), Node(2, {200, 300})});
  const std::vector<ReplicaRange> expected = {{{Token{300}, Token{100}}, {0}},
                                              {{Token{100}, Token{300}}, {1}}};
  EXPECT_EQ(ReplicaRangesOf(ring, 1), expected);
}

TEST(ReplicaRanges, IgnoreTheOrderOfPreference) {
  const Ring ring = RingOf({Node(1, {100}), Node(2, {200}), Node(3, {300})});
  const std::vector<ReplicaRange> expected = {{{Token{300}, Token{100}}, {0, 1}},
                                              {{Token{100}, Token{200}}, {1, 2}},
                                              {{Token{200}, Token{300}}, {0, 2}}};
  EXPECT_EQ(ReplicaRangesOf(ring, 2), expected);
}

}  // namespace
}  // namespace gyre
