// Preference lists: distinct nodes, distinct zones while there are enough, and prefixes of each other.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

#include "ring/ring.h"
#include "tests/ring/rings.h"

namespace gyre {
namespace {

using testing::ElementsAre;

struct Shape {
  std::string name;
  std::vector<Member> members;
};

// Every kind of ring that the rule treats differently.
std::vector<Shape> Shapes() {
  std::vector<Shape> shapes = {
      {"one node", HashedNodes(1, 4)},
      {"two nodes, one token each", HashedNodes(2, 1)},
      {"one zone", HashedNodes(5, 8)},
      {"more nodes than a list holds", HashedNodes(30, 4)},
      {"two zones", HashedNodes(7, 8, 2)},
      {"three zones", HashedNodes(9, 8, 3)},
      {"each node a zone of its own", HashedNodes(20, 4, 20)},
      {"more zones than a list holds", HashedNodes(60, 3, 30)},
      {"equal tokens",
       {Node(4, {10, 20}, "a"), Node(3, {10, 30}, "b"), Node(2, {20, 30}, "a"), Node(1, {10}, "c")}},
      {"the ends of the number line",
       {Node(1, {0, kLast}, "a"), Node(2, {0}, "b"), Node(3, {kLast - 1}, "a")}},
  };
  Shape lopsided{"a rare zone", HashedNodes(25, 6)};
  lopsided.members.push_back(HashedNode(99, 1, "rare"));
  shapes.push_back(lopsided);
  Shape idle{"a node without tokens", HashedNodes(4, 6, 2)};
  idle.members.push_back(Node(99, {}, "z9"));
  shapes.push_back(idle);
  return shapes;
}

TEST(Preferences, AreWhatTheRuleSays) {
  for (const Shape& shape : Shapes()) {
    const Ring ring = RingOf(shape.members);
    for (const Token token : TellingTokens(ring)) {
      ASSERT_EQ(IdsAt(ring, token), WalkedIdsAt(shape.members, token))
          << shape.name << " at " << ToString(token);
    }
  }
}

TEST(Preferences, NameEachOfNDistinctNodesWheneverThereAreN) {
  for (const Shape& shape : Shapes()) {
    const Ring ring = RingOf(shape.members);
    const size_t holders =
        std::ranges::count_if(shape.members, [](const Member& member) { return !member.tokens.empty(); });
    for (size_t arc = 0; arc < ring.arc_count(); ++arc) {
      const auto list = ring.PreferencesOfArc(arc);
      ASSERT_EQ(list.size(), std::min(holders, Ring::kPreferencesMax)) << shape.name;
      ASSERT_EQ(std::set(list.begin(), list.end()).size(), list.size()) << shape.name;
    }
  }
}

TEST(Preferences, NameDistinctZonesWheneverThereAreEnough) {
  for (const Shape& shape : Shapes()) {
    const Ring ring = RingOf(shape.members);
    std::set<std::string> all;
    for (const Member& member : shape.members) {
      if (!member.tokens.empty()) all.insert(member.zone);
    }
    for (size_t arc = 0; arc < ring.arc_count(); ++arc) {
      for (size_t replicas = 1; replicas <= Ring::kPreferencesMax; ++replicas) {
        const auto primaries = ring.PrimariesOfArc(arc, replicas);
        std::set<std::string> zones;
        for (const MemberIndex member : primaries) zones.insert(ring.members()[member].zone);
        ASSERT_EQ(zones.size(), std::min(primaries.size(), all.size())) << shape.name;
      }
    }
  }
}

TEST(Preferences, AShorterListIsAPrefixOfALongerOne) {
  for (const Shape& shape : Shapes()) {
    const Ring ring = RingOf(shape.members);
    for (size_t arc = 0; arc < ring.arc_count(); ++arc) {
      const auto all = ring.PreferencesOfArc(arc);
      for (size_t replicas = 1; replicas <= Ring::kPreferencesMax; ++replicas) {
        const auto some = ring.PrimariesOfArc(arc, replicas);
        ASSERT_EQ(some.size(), std::min(replicas, all.size())) << shape.name;
        ASSERT_TRUE(std::ranges::equal(some, all.first(some.size()))) << shape.name;
      }
    }
  }
}

TEST(Preferences, TakeEachZoneTwiceBeforeAnyThrice) {
  const Ring ring = RingOf({Node(1, {10}, "a"), Node(2, {20}, "a"), Node(3, {30}, "a"), Node(4, {40}, "b"),
                            Node(5, {50}, "b"), Node(6, {60}, "c")});
  EXPECT_THAT(IdsAt(ring, Token{10}), ElementsAre(1, 4, 6, 2, 5, 3));
  EXPECT_THAT(IdsAt(ring, Token{11}), ElementsAre(2, 4, 6, 3, 5, 1));
  EXPECT_THAT(IdsAt(ring, Token{41}), ElementsAre(5, 6, 1, 2, 4, 3))
      << "each round starts from the arc again";
}

TEST(Preferences, OfALargeRingAgreeWithTheRule) {
  const std::vector<Member> members = HashedNodes(1000, 16, 10);
  const Ring ring = RingOf(members);
  EXPECT_EQ(ring.arc_count(), 16000u);
  for (size_t arc = 0; arc < ring.arc_count(); arc += 2000) {
    ASSERT_EQ(IdsAt(ring, ring.ArcEnd(arc)), WalkedIdsAt(members, ring.ArcEnd(arc)));
  }
}

}  // namespace
}  // namespace gyre
