// The difference of two rings, against asking both rings about each token that could tell.
#include "ring/ring_diff.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "ring/ownership.h"
#include "tests/ring/rings.h"

namespace gyre {
namespace {

std::vector<NodeId> ListAt(Placement placement, Token token) {
  std::vector<NodeId> nodes;
  for (const MemberIndex member :
       placement.ring.PrimariesOfArc(placement.ring.ArcOf(token), placement.replicas)) {
    nodes.push_back(placement.ring.members()[member].id);
  }
  return nodes;
}

bool SameChange(const RingChange& a, const RingChange& b) {
  return a.before == b.before && a.after == b.after;
}

void CheckShape(const std::vector<RingChange>& changes) {
  for (size_t i = 0; i < changes.size(); ++i) {
    const RingChange& next = changes[(i + 1) % changes.size()];
    if (i + 1 < changes.size()) {
      ASSERT_LT(changes[i].end, next.end);
    }
    if (changes.size() > 1 && changes[i].end == next.begin) {
      ASSERT_FALSE(SameChange(changes[i], next)) << "neighbours with the same change are one range";
    }
  }
}

void CheckReplacements(const RingChange& change) {
  std::vector<NodeId> result = change.before;
  for (const Replacement& replacement : change.replacements) {
    ASSERT_TRUE(replacement.leaver || replacement.newcomer);
    if (replacement.leaver) {
      ASSERT_EQ(std::erase(result, replacement.leaver), 1u);
    }
    if (replacement.newcomer) result.push_back(replacement.newcomer);
  }
  EXPECT_TRUE(std::ranges::is_permutation(result, change.after));
}

void CheckAgainstBruteForce(Placement before, Placement after) {
  const std::vector<RingChange> changes = DiffRings(before, after);
  CheckShape(changes);
  for (const RingChange& change : changes) CheckReplacements(change);

  std::vector<Token> tokens = TellingTokens(before.ring);
  for (const Token token : TellingTokens(after.ring)) tokens.push_back(token);
  for (const std::string& key : Keys(500)) tokens.push_back(TokenOf(key));
  for (const Token token : tokens) {
    const std::vector<NodeId> old_list = ListAt(before, token);
    const std::vector<NodeId> new_list = ListAt(after, token);
    const auto covers = [&](const RingChange& change) { return change.Contains(token); };
    const auto found = std::ranges::find_if(changes, covers);
    ASSERT_EQ(std::ranges::count_if(changes, covers), old_list == new_list ? 0 : 1) << ToString(token);
    if (found == changes.end()) continue;
    ASSERT_EQ(found->before, old_list) << ToString(token);
    ASSERT_EQ(found->after, new_list) << ToString(token);
    ASSERT_EQ(found->owner_changes(), old_list.front() != new_list.front());
  }
}

TEST(RingDiff, AgreesWithBruteForce) {
  std::vector<std::vector<Member>> shapes = {HashedNodes(1, 8),     HashedNodes(4, 8),
                                             HashedNodes(5, 8),     HashedNodes(5, 9),
                                             HashedNodes(6, 8, 3),  HashedNodes(6, 8, 2),
                                             HashedNodes(20, 8, 4), {Node(1, {5, 9}), Node(2, {5, kLast})}};
  std::vector<Ring> rings;
  for (const std::vector<Member>& members : shapes) rings.push_back(RingOf(members));
  for (const Ring& before : rings) {
    for (const Ring& after : rings) {
      for (const size_t replicas : {1, 2, 3, 5})
        CheckAgainstBruteForce({before, replicas}, {after, replicas});
      CheckAgainstBruteForce({before, 2}, {after, 3});
      CheckAgainstBruteForce({before, 3}, {after, 1});
    }
  }
}

TEST(RingDiff, OfARingWithItselfIsEmpty) {
  const Ring ring = RingOf(HashedNodes(5, 16, 2));
  EXPECT_EQ(DiffRings({ring, 3}, {ring, 3}), std::vector<RingChange>{});
}

TEST(RingDiff, NamesWhoReplacesWhom) {
  const Ring before = RingOf({Node(1, {100}), Node(2, {200}), Node(3, {300})});
  const Ring after = RingOf({Node(1, {100}), Node(2, {200}), Node(3, {300}), Node(4, {250})});
  const NodeId one{1}, two{2}, three{3}, four{4};
  const std::vector<RingChange> expected = {
      {{Token{100}, Token{200}}, {two, three}, {two, four}, {{.leaver = three, .newcomer = four}}},
      {{Token{200}, Token{250}}, {three, one}, {four, three}, {{.leaver = one, .newcomer = four}}},
  };
  const std::vector<RingChange> changes = DiffRings({before, 2}, {after, 2});
  EXPECT_EQ(changes, expected);
  EXPECT_FALSE(changes[0].owner_changes());
  EXPECT_TRUE(changes[1].owner_changes());
}

TEST(RingDiff, MergesAcrossTheWrapAroundAndUpToTheWholeRing) {
  const Ring one = RingOf({Node(1, {100, 200})});
  const Ring two = RingOf({Node(2, {150, 300})});
  const std::vector<RingChange> all = {
      {kWholeRing, {NodeId{1}}, {NodeId{2}}, {{.leaver = NodeId{1}, .newcomer = NodeId{2}}}}};
  EXPECT_EQ(DiffRings({one, 1}, {two, 1}), all);

  const Ring both = RingOf({Node(1, {100, 200}), Node(2, {150})});
  const std::vector<RingChange> wrapped = {
      {{Token{150}, Token{100}}, {NodeId{1}}, {NodeId{2}}, {{.leaver = NodeId{1}, .newcomer = NodeId{2}}}}};
  const std::vector<RingChange> inner = {
      {{Token{100}, Token{150}}, {NodeId{2}}, {NodeId{1}}, {{.leaver = NodeId{2}, .newcomer = NodeId{1}}}}};
  EXPECT_EQ(DiffRings({both, 1}, {two, 1}), wrapped);
  EXPECT_EQ(DiffRings({both, 1}, {one, 1}), inner);
}

TEST(RingDiff, ShowsAChangeOfOrderAloneWithoutReplacements) {
  const Ring before = RingOf({Node(1, {100}), Node(2, {200})});
  const Ring after = RingOf({Node(1, {100, 150}), Node(2, {200})});
  const std::vector<RingChange> expected = {
      {{Token{100}, Token{150}}, {NodeId{2}, NodeId{1}}, {NodeId{1}, NodeId{2}}, {}}};
  const std::vector<RingChange> changes = DiffRings({before, 2}, {after, 2});
  EXPECT_EQ(changes, expected);
  EXPECT_TRUE(changes[0].owner_changes());
}

TEST(RingDiff, MoreOrFewerReplicasAreGainsOrLosses) {
  const Ring ring = RingOf({Node(1, {100}), Node(2, {200})});
  const std::vector<RingChange> gains = {{{Token{200}, Token{100}},
                                          {NodeId{1}},
                                          {NodeId{1}, NodeId{2}},
                                          {{.leaver = {}, .newcomer = NodeId{2}}}},
                                         {{Token{100}, Token{200}},
                                          {NodeId{2}},
                                          {NodeId{2}, NodeId{1}},
                                          {{.leaver = {}, .newcomer = NodeId{1}}}}};
  EXPECT_EQ(DiffRings({ring, 1}, {ring, 2}), gains);
  const std::vector<RingChange> losses = DiffRings({ring, 2}, {ring, 1});
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0].replacements, (std::vector<Replacement>{{.leaver = NodeId{2}, .newcomer = {}}}));
}

// Seven nodes in zones that a newcomer to "z0" may join, share alone with one other, or open.
std::vector<std::vector<Member>> ShapesToJoin() {
  std::vector<std::vector<Member>> shapes = {HashedNodes(7, 16), HashedNodes(7, 16, 2),
                                             HashedNodes(7, 16, 7)};
  for (Member& member : shapes.emplace_back(HashedNodes(7, 16))) member.zone = "z1";
  return shapes;
}

TEST(RingDiff, ANewNodeTakesItsShareAndNothingElseMoves) {
  const Member joining = HashedNode(100, 16, "z0");
  for (const std::vector<Member>& members : ShapesToJoin()) {
    const Ring before = RingOf(members);
    std::vector<Member> more = members;
    more.push_back(joining);
    const Ring after = RingOf(more);
    for (size_t replicas = 1; replicas <= members.size(); ++replicas) {
      Positions gained = 0;
      for (const RingChange& change : DiffRings({before, replicas}, {after, replicas})) {
        if (change.replacements.empty()) continue;  // zones may reorder a list without moving data
        ASSERT_EQ(change.replacements.size(), 1u);
        ASSERT_EQ(change.replacements[0].newcomer, joining.id);
        ASSERT_TRUE(change.replacements[0].leaver);
        gained += change.width();
      }
      EXPECT_TRUE(gained == SharesOf(after, replicas)[after.IndexOf(joining.id)].replicated);
    }
  }
}

TEST(RingDiff, ALeavingNodeGivesUpItsShareAndNothingElseMoves) {
  const Member leaving = HashedNode(100, 16, "z0");
  for (const std::vector<Member>& members : ShapesToJoin()) {
    const Ring after = RingOf(members);
    std::vector<Member> more = members;
    more.push_back(leaving);
    const Ring before = RingOf(more);
    for (size_t replicas = 1; replicas <= members.size(); ++replicas) {
      Positions lost = 0;
      for (const RingChange& change : DiffRings({before, replicas}, {after, replicas})) {
        if (change.replacements.empty()) continue;
        ASSERT_EQ(change.replacements.size(), 1u);
        ASSERT_EQ(change.replacements[0].leaver, leaving.id);
        ASSERT_TRUE(change.replacements[0].newcomer);
        lost += change.width();
      }
      EXPECT_TRUE(lost == SharesOf(before, replicas)[before.IndexOf(leaving.id)].replicated);
    }
  }
}

}  // namespace
}  // namespace gyre
