// The ring: what it accepts, its arcs, equal tokens, and what moves when members come and go.
#include "ring/ring.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/ring/rings.h"

namespace gyre {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void ExpectInvalid(std::vector<Member> members, const std::string& because) {
  const auto ring = Ring::Build(std::move(members));
  EXPECT_EQ(ring.status().code(), absl::StatusCode::kInvalidArgument) << because;
  EXPECT_THAT(std::string(ring.status().message()), HasSubstr(because));
}

std::vector<uint64_t> EveryNth(uint64_t step, size_t count) {
  std::vector<uint64_t> tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back(step * i);
  return tokens;
}

TEST(Build, RefusesWhatIsNotARing) {
  ExpectInvalid({}, "at least one member");
  ExpectInvalid({Node(0, {1})}, "the id 0");
  ExpectInvalid({Node(7, {1}), Node(8, {2}), Node(7, {3})}, "Member 0000000000000007 is listed twice");
  ExpectInvalid({Node(7, {2, 1})}, "Member 0000000000000007 has tokens out of order");
  ExpectInvalid({Node(7, {1, 1})}, "Member 0000000000000007 has tokens out of order or repeated");
  ExpectInvalid({Node(7, {}), Node(8, {})}, "No member of the ring has a token");
}

TEST(Build, HasLimits) {
  std::vector<Member> members;
  for (uint64_t id = 1; id <= Ring::kMembersMax; ++id) members.push_back(Node(id, {id}));
  EXPECT_EQ(RingOf(members).members().size(), Ring::kMembersMax);
  members.push_back(Node(Ring::kMembersMax + 1, {}));
  ExpectInvalid(members, "at most 4096 members, but was given 4097");

  const size_t most = Ring::kTokensPerMemberMax;
  EXPECT_EQ(RingOf({Node(1, EveryNth(3, most))}).arc_count(), most);
  ExpectInvalid({Node(1, EveryNth(3, most + 1))}, "has 4097 tokens");

  members.clear();
  for (uint64_t id = 1; id <= Ring::kTokensMax / most; ++id) members.push_back(Node(id, EveryNth(id, most)));
  EXPECT_EQ(RingOf(members).members().size(), Ring::kTokensMax / most);
  members.push_back(Node(5000, {1}));
  ExpectInvalid(members, "have 1048577 tokens together");
}

TEST(Build, OrderOfMembersDoesNotMatter) {
  std::vector<Member> members = HashedNodes(5, 4, 2);
  const Ring first = RingOf(members);
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.id < b.id; });
  do {
    const Ring ring = RingOf(members);
    ASSERT_EQ(ring, first);
    ASSERT_EQ(ring.arc_count(), first.arc_count());
    for (size_t arc = 0; arc < ring.arc_count(); ++arc) {
      ASSERT_EQ(ring.ArcEnd(arc), first.ArcEnd(arc));
      ASSERT_TRUE(std::ranges::equal(ring.PreferencesOfArc(arc), first.PreferencesOfArc(arc)));
    }
  } while (std::next_permutation(members.begin(), members.end(),
                                 [](const Member& a, const Member& b) { return a.id < b.id; }));
}

TEST(Members, AreOrderedByIdAndFound) {
  const Ring ring = RingOf({Node(30, {1}), Node(10, {2}), Node(20, {})});
  EXPECT_EQ(ring.members()[0].id.value, 10u);
  EXPECT_EQ(ring.members()[2].id.value, 30u);
  EXPECT_EQ(ring.IndexOf(NodeId{10}), 0);
  EXPECT_EQ(ring.IndexOf(NodeId{20}), 1);
  EXPECT_EQ(ring.IndexOf(NodeId{30}), 2);
  for (const uint64_t absent : {0, 9, 15, 31}) EXPECT_EQ(ring.IndexOf(NodeId{absent}), -1) << absent;
}

TEST(Arcs, AKeyOnATokenBelongsToIt) {
  const Ring ring = RingOf({Node(1, {100}), Node(2, {200}), Node(3, {300})});
  EXPECT_THAT(IdsAt(ring, Token{100}), ElementsAre(1, 2, 3));
  EXPECT_THAT(IdsAt(ring, Token{101}), ElementsAre(2, 3, 1));
  EXPECT_THAT(IdsAt(ring, Token{200}), ElementsAre(2, 3, 1));
  EXPECT_THAT(IdsAt(ring, Token{201}), ElementsAre(3, 1, 2));
  EXPECT_THAT(IdsAt(ring, Token{300}), ElementsAre(3, 1, 2));
}

TEST(Arcs, WrapAround) {
  const Ring ring = RingOf({Node(1, {100}), Node(2, {200})});
  EXPECT_EQ(ring.ArcOf(Token{201}), 0u);
  EXPECT_EQ(ring.ArcOf(Token{kLast}), 0u);
  EXPECT_EQ(ring.ArcOf(Token{0}), 0u);
  EXPECT_EQ(ring.ArcOf(Token{100}), 0u);
  EXPECT_EQ(ring.ArcOf(Token{101}), 1u);
  EXPECT_EQ(ring.ArcBegin(0), Token{200});
  EXPECT_EQ(ring.ArcEnd(0), Token{100});
  EXPECT_EQ(ring.ArcBegin(1), Token{100});
  EXPECT_EQ(ring.ArcEnd(1), Token{200});
}

TEST(Arcs, MayEndOnTheFirstAndTheLastToken) {
  const Ring ring = RingOf({Node(1, {0}), Node(2, {kLast})});
  EXPECT_THAT(IdsAt(ring, Token{0}), ElementsAre(1, 2));
  EXPECT_THAT(IdsAt(ring, Token{1}), ElementsAre(2, 1));
  EXPECT_THAT(IdsAt(ring, Token{kLast}), ElementsAre(2, 1));
}

TEST(Arcs, OneTokenHoldsEverything) {
  const Ring ring = RingOf({Node(1, {500}), Node(2, {})});
  EXPECT_EQ(ring.arc_count(), 1u);
  EXPECT_EQ(ring.ArcBegin(0), ring.ArcEnd(0));
  for (const uint64_t token : {uint64_t{0}, uint64_t{500}, uint64_t{501}, kLast}) {
    EXPECT_THAT(IdsAt(ring, Token{token}), ElementsAre(1)) << "a member without tokens holds nothing";
  }
}

TEST(EqualTokens, BelongToTheSmallerIdAndTheOtherFollows) {
  const Ring ring = RingOf({Node(1, {300}), Node(9, {100}), Node(5, {100, 200})});
  EXPECT_EQ(ring.arc_count(), 3u) << "an equal token makes no empty arc";
  EXPECT_EQ(ring.ArcEnd(0), Token{100});
  EXPECT_EQ(ring.ArcEnd(1), Token{200});
  EXPECT_EQ(ring.ArcEnd(2), Token{300});
  EXPECT_THAT(IdsAt(ring, Token{100}), ElementsAre(5, 9, 1));
  EXPECT_THAT(IdsAt(ring, Token{101}), ElementsAre(5, 1, 9));
  EXPECT_THAT(IdsAt(ring, Token{201}), ElementsAre(1, 5, 9));
}

TEST(EqualTokens, OfAllMembersMakeOneArcInOrderOfId) {
  const Ring ring = RingOf({Node(3, {7}), Node(1, {7}), Node(2, {7})});
  EXPECT_EQ(ring.arc_count(), 1u);
  EXPECT_THAT(IdsAt(ring, Token{7}), ElementsAre(1, 2, 3));
  EXPECT_THAT(IdsAt(ring, Token{8}), ElementsAre(1, 2, 3));
}

TEST(EqualTokens, StillSpreadOverZones) {
  const Ring ring = RingOf({Node(1, {7}, "a"), Node(2, {7}, "a"), Node(3, {7}, "b")});
  EXPECT_THAT(IdsAt(ring, Token{7}), ElementsAre(1, 3, 2));
}

TEST(Change, RemovingANodeMovesOnlyItsKeys) {
  const std::vector<Member> members = HashedNodes(6, 16);
  const Ring before = RingOf(members);
  const Ring after = RingOf({members[0], members[1], members[3], members[4], members[5]});
  const uint64_t gone = members[2].id.value;
  size_t moved = 0;
  for (const std::string& key : Keys(20000)) {
    std::vector<uint64_t> expected = IdsAt(before, TokenOf(key));
    moved += expected.front() == gone;
    std::erase(expected, gone);
    ASSERT_EQ(IdsAt(after, TokenOf(key)), expected) << key;  // all others keep their order
  }
  EXPECT_GT(moved, 0u);
}

TEST(Change, AddingANodeMovesKeysOnlyOntoIt) {
  const std::vector<Member> members = HashedNodes(6, 16, 3);
  std::vector<Member> more = members;
  more.push_back(HashedNode(100, 16, "z1"));
  const Ring before = RingOf(members);
  const Ring after = RingOf(more);
  size_t moved = 0;
  for (const std::string& key : Keys(20000)) {
    const uint64_t old_owner = IdsAt(before, TokenOf(key)).front();
    const uint64_t new_owner = IdsAt(after, TokenOf(key)).front();
    if (old_owner == new_owner) continue;
    ASSERT_EQ(new_owner, 100u) << key;
    ++moved;
  }
  EXPECT_GT(moved, 0u);
}

TEST(Change, AddThenRemoveGivesBackTheIdenticalRing) {
  const Ring before = RingOf(HashedNodes(6, 16, 3));
  std::vector<Member> members = MembersOf(before);
  members.insert(members.begin() + 2, HashedNode(100, 16, "z1"));
  members = MembersOf(RingOf(members));
  std::erase_if(members, [](const Member& member) { return member.id.value == 100; });
  const Ring after = RingOf(members);
  EXPECT_EQ(after, before);
  ASSERT_EQ(after.arc_count(), before.arc_count());
  for (size_t arc = 0; arc < before.arc_count(); ++arc) {
    EXPECT_EQ(after.ArcEnd(arc), before.ArcEnd(arc));
    EXPECT_TRUE(std::ranges::equal(after.PreferencesOfArc(arc), before.PreferencesOfArc(arc)));
  }
}

}  // namespace
}  // namespace gyre
