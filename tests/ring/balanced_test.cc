// The balanced allocator: how even it is, what it moves, and that it depends on nothing else.
#include "ring/balanced.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/ring/balance.h"

namespace gyre {
namespace {

constexpr size_t kReplicas = 3;

std::vector<Member> New(const Fleet& fleet) { return BalancedTokens({}, MembersOf(fleet), kReplicas); }

std::vector<Member> Joined(const std::vector<Member>& before, Member newcomer) {
  std::vector<Member> after = before;
  newcomer.tokens.clear();
  after.push_back(std::move(newcomer));
  return BalancedTokens(before, after, kReplicas);
}

std::vector<Member> Left(const std::vector<Member>& before, size_t which) {
  std::vector<Member> after = before;
  after.erase(after.begin() + static_cast<ptrdiff_t>(which));
  return BalancedTokens(before, after, kReplicas);
}

std::string NameOf(const Fleet& fleet) {
  return std::to_string(fleet.count) + " nodes, " + std::to_string(fleet.zones) + " zones, " +
         (fleet.mixed ? "mixed weights" : "equal weights");
}

// Tokens of all: as many as they should, sorted, and none twice.
void CheckTokens(const std::vector<Member>& members) {
  std::set<Token> all;
  for (const Member& member : members) {
    EXPECT_EQ(member.tokens.size(), BalancedTokensOfWeight(member.weight));
    EXPECT_TRUE(std::ranges::is_sorted(member.tokens));
    for (const Token token : member.tokens) EXPECT_TRUE(all.insert(token).second) << ToString(token);
  }
}

// Each key has as many zones as there are, up to its replicas.
void CheckZones(const std::vector<Member>& members, size_t zones) {
  const Ring ring = Built(members);
  for (size_t arc = 0; arc < ring.arc_count(); ++arc) {
    std::set<std::string> met;
    for (const MemberIndex i : ring.PrimariesOfArc(arc, kReplicas)) met.insert(ring.members()[i].zone);
    ASSERT_EQ(met.size(), std::min({zones, kReplicas, members.size()}));
  }
}

TEST(BalancedTokensOfWeight, IsProportionalUpToTheLimit) {
  EXPECT_EQ(BalancedTokensOfWeight(0), 0u);
  EXPECT_EQ(BalancedTokensOfWeight(1), 16u);
  EXPECT_EQ(BalancedTokensOfWeight(3), 48u);
  EXPECT_EQ(BalancedTokensOfWeight(256), 4096u);
  EXPECT_EQ(BalancedTokensOfWeight(UINT32_MAX), Ring::kTokensPerMemberMax);
}

TEST(BalancedNewRing, IsWithinOnePercentOfTheBest) {
  for (const Fleet& fleet : Fleets({1, 2, 3, 4, 5, 6, 7, 10, 50, 200})) {
    const std::vector<Member> members = New(fleet);
    CheckTokens(members);
    CheckZones(members, fleet.zones);
    EXPECT_LE(EvennessOf(members, kReplicas).to_best, 1.01) << NameOf(fleet);
  }
}

TEST(BalancedNewRing, OwnsEvenlyWhileAllHoldEverything) {
  for (const size_t count : {1, 2, 3}) {
    EXPECT_LE(EvennessOf(New({count}), kReplicas).owned, 1.01) << count;
  }
}

TEST(BalancedNewRing, DoesNotDependOnTheOrderOfMembers) {
  for (const Fleet& fleet : Fleets({3, 10})) {
    const std::vector<Member> members = New(fleet);
    std::vector<Member> turned = MembersOf(fleet);
    std::ranges::reverse(turned);
    turned = BalancedTokens({}, turned, kReplicas);
    std::ranges::reverse(turned);
    EXPECT_EQ(members, turned) << NameOf(fleet);
  }
}

// The tokens themselves, so that no build and no machine may differ.
TEST(BalancedNewRing, NeverChanges) {
  std::string text;
  std::vector<Member> members = New({5, 3, true});
  members = Joined(members, FleetMember({0, 3, true}, 5));
  members = Left(members, 1);
  for (const Member& member : members) {
    for (const Token token : member.tokens) text += ToString(token);
  }
  EXPECT_EQ(ToString(TokenOf(text)), "12db72177b6f8b83");
}

TEST(BalancedJoin, IsEvenAndMovesLittleAndOnlyOntoTheNewcomer) {
  for (const Fleet& fleet : Fleets({5, 6, 7, 10, 20, 50, 200})) {
    const std::vector<Member> before = New(fleet);
    const std::vector<Member> after = Joined(before, FleetMember(fleet, fleet.count));
    CheckTokens(after);
    CheckZones(after, fleet.zones);
    EXPECT_TRUE(std::ranges::equal(before, std::span(after).first(before.size()))) << NameOf(fleet);
    EXPECT_LE(EvennessOf(after, kReplicas).to_best, 1.05) << NameOf(fleet);
    const Movement movement = MovementOf(before, after, kReplicas);
    EXPECT_LE(movement.relative(), 1.1) << NameOf(fleet);
    EXPECT_EQ(movement.to_stayers, 0) << NameOf(fleet);
  }
}

TEST(BalancedJoin, DoesNotDependOnTheOrderOfMembers) {
  const Fleet fleet{9, 3, true};
  const std::vector<Member> before = New(fleet);
  std::vector<Member> after = before;
  after.push_back(FleetMember(fleet, 9));
  after.push_back(FleetMember(fleet, 10));
  const std::vector<Member> joined = BalancedTokens(before, after, kReplicas);
  std::vector<Member> turned_before = before;
  std::ranges::reverse(turned_before);
  std::ranges::reverse(after);
  std::vector<Member> turned = BalancedTokens(turned_before, after, kReplicas);
  std::ranges::reverse(turned);
  EXPECT_EQ(joined, turned);
}

TEST(BalancedJoin, ManyAtOnce) {
  for (const size_t zones : {1, 3}) {
    const Fleet fleet{6, zones};
    const std::vector<Member> before = New(fleet);
    std::vector<Member> after = before;
    for (size_t i = 6; i < 12; ++i) after.push_back(FleetMember(fleet, i));
    after = BalancedTokens(before, after, kReplicas);
    CheckTokens(after);
    EXPECT_LE(EvennessOf(after, kReplicas).to_best, 1.05);
    EXPECT_LE(MovementOf(before, after, kReplicas).relative(), 1.1);
  }
}

TEST(BalancedJoin, ToAHashedRingGetsAsManyTokensAsTheOthersAndItsShare) {
  for (const size_t zones : {1, 3}) {
    const Fleet fleet{9, zones};
    const std::vector<Member> before = Hashed(MembersOf(fleet));
    const std::vector<Member> after = Joined(before, FleetMember(fleet, 9));
    EXPECT_EQ(after.back().tokens.size(), TokensOfWeight(1));
    EXPECT_LE(EvennessOf(after, kReplicas).to_best, EvennessOf(before, kReplicas).to_best);
    EXPECT_LE(MovementOf(before, after, kReplicas).relative(), 1.1);
  }
}

TEST(BalancedLeave, IsEvenAndMovesLittle) {
  for (const Fleet& fleet : Fleets({6, 7, 10, 20, 50, 200})) {
    const std::vector<Member> before = New(fleet);
    for (const size_t which : {size_t{0}, fleet.count / 2, fleet.count - 1}) {
      const std::vector<Member> after = Left(before, which);
      CheckTokens(after);
      CheckZones(after, fleet.zones);
      EXPECT_LE(EvennessOf(after, kReplicas).to_best, 1.05) << NameOf(fleet);
      EXPECT_LE(MovementOf(before, after, kReplicas).relative(), 1.1) << NameOf(fleet);
    }
  }
}

TEST(BalancedWeight, ThatChangesMovesTheTokensOfThatMemberOnly) {
  for (const size_t zones : {1, 3}) {
    const std::vector<Member> before = New({9, zones, false});
    std::vector<Member> heavier = before;
    heavier[4].weight = 2;
    heavier = BalancedTokens(before, heavier, kReplicas);
    CheckTokens(heavier);
    EXPECT_TRUE(std::ranges::includes(heavier[4].tokens, before[4].tokens));
    EXPECT_LE(EvennessOf(heavier, kReplicas).to_best, 1.05);
    EXPECT_LE(MovementOf(before, heavier, kReplicas).relative(), 1.1);

    std::vector<Member> lighter = heavier;
    lighter[4].weight = 1;
    lighter = BalancedTokens(heavier, lighter, kReplicas);
    CheckTokens(lighter);
    EXPECT_LE(EvennessOf(lighter, kReplicas).to_best, 1.05);
    EXPECT_LE(MovementOf(heavier, lighter, kReplicas).relative(), 1.1);
  }
}

TEST(BalancedWeight, OfZeroHoldsNothing) {
  const std::vector<Member> before = New({5});
  std::vector<Member> after = before;
  after[2].weight = 0;
  after = BalancedTokens(before, after, kReplicas);
  EXPECT_TRUE(after[2].tokens.empty());
  CheckTokens(after);
  for (Member& member : after) member.weight = 0;
  for (const Member& member : BalancedTokens(before, after, kReplicas)) EXPECT_TRUE(member.tokens.empty());
}

TEST(BalancedChange, OfNothingMovesNothing) {
  for (const Fleet& fleet : Fleets({1, 5, 10})) {
    const std::vector<Member> members = New(fleet);
    EXPECT_EQ(BalancedTokens(members, members, kReplicas), members);
  }
  const std::vector<Member> hashed = Hashed(MembersOf({10}));
  EXPECT_EQ(BalancedTokens(hashed, hashed, kReplicas), hashed);
}

TEST(BalancedChange, OfAllMembersIsANewRing) {
  const std::vector<Member> before = New({5});
  std::vector<Member> after;
  for (size_t i = 5; i < 10; ++i) after.push_back(FleetMember({5}, i));
  after = BalancedTokens(before, after, kReplicas);
  CheckTokens(after);
  EXPECT_LE(EvennessOf(after, kReplicas).to_best, 1.01);
}

TEST(BalancedChange, AcceptsEqualTokensOfOthers) {
  std::vector<Member> before = New({5});
  before[0].tokens[3] = before[1].tokens[3];
  std::ranges::sort(before[0].tokens);
  const std::vector<Member> after = Joined(before, FleetMember({5}, 5));
  EXPECT_TRUE(std::ranges::equal(before, std::span(after).first(5)));
  EXPECT_EQ(Left(before, 4).size(), 4u);
}

// One by one from 3 nodes to 20 and back to 5; zones grow and shrink in turn.
TEST(BalancedChain, StaysEvenOnTheWayUpAndDown) {
  for (const size_t zones : {1, 3}) {
    for (const bool mixed : {false, true}) {
      const Fleet fleet{3, zones, mixed};
      std::vector<Member> members = New(fleet);
      while (members.size() < 20) {
        const std::vector<Member> after = Joined(members, FleetMember(fleet, members.size()));
        EXPECT_LE(MovementOf(members, after, kReplicas).relative(), 1.1) << after.size();
        members = after;
        CheckTokens(members);
        if (members.size() < 5) continue;
        EXPECT_LE(EvennessOf(members, kReplicas).to_best, 1.05) << members.size();
      }
      while (members.size() > 5) {
        const std::vector<Member> after = Left(members, members.size() / 2);
        EXPECT_LE(MovementOf(members, after, kReplicas).relative(), 1.25) << after.size();
        members = after;
        CheckTokens(members);
        EXPECT_LE(EvennessOf(members, kReplicas).to_best, 1.1) << members.size() << zones << mixed;
      }
    }
  }
}

}  // namespace
}  // namespace gyre
