// Section E, membership and rebalancing, as far as it is about who is a member: nobody slips in, and nobody
// comes back.
#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "ring/replica_ranges.h"
#include "server/core/plan.h"
#include "tests/server/core/moving_cluster.h"

namespace gyre {
namespace {

// Nobody who is up knows of this node, nor gives it anything.
void ExpectGone(Moving& cluster, int gone) {
  for (int i = 0; i < cluster.size(); ++i) {
    if (!cluster.up(i) || i == gone) continue;
    EXPECT_FALSE(cluster[i].known().contains(IdOf(gone))) << "node " << i;
    EXPECT_LT(cluster[i].view()->ring.IndexOf(IdOf(gone)), 0) << "node " << i;
    EXPECT_EQ(cluster[i].layouts().other, nullptr) << "node " << i;
  }
}

TEST(CasesE, Case45_WhoWasRemovedNeverReturnsByTheGossipOfWhoSleptThroughIt) {
  Moving cluster(0, 5);
  ASSERT_TRUE(cluster.Apply(0, Moving::Removing(4)).ok());
  // It has told a single node of its last step, and not heard that the old layout retired.
  ASSERT_TRUE(cluster.RunUntil(Seconds(10), [&] {
    const auto steps = cluster[0].steps();
    const auto own = std::ranges::find(steps, IdOf(1), &control::MemberStep::node);
    return own != steps.end() && own->step == MoveStep::kSyncAck;
  }));
  ASSERT_TRUE(cluster[1].layouts().moving());
  cluster.Crash(1);
  ASSERT_TRUE(cluster.RunUntil(Seconds(20), [&] { return cluster.Finished(); }));
  cluster.Crash(4);
  cluster.Run(Seconds(70));
  ExpectGone(cluster, 4);
  cluster.Start(1);
  for (int second = 0; second < 300; ++second) {
    cluster.Run(Seconds(1));
    if (second >= 5) {
      ExpectGone(cluster, 4);
    } else {
      for (const int i : {0, 2, 3}) EXPECT_LT(cluster[i].view()->ring.IndexOf(IdOf(4)), 0);
    }
  }
  EXPECT_TRUE(cluster.Finished());
}

// The removed one itself comes up where it always was, with all that it knew, before and after it was told.
TEST(CasesE, Case45_WhoWasRemovedIsToldAndTakenInByNobody) {
  Moving cluster(0, 4);
  cluster.Crash(3);
  ASSERT_TRUE(cluster.Apply(0, Moving::Removing(3)).ok());
  ASSERT_TRUE(cluster.RunUntil(Seconds(20), [&] { return cluster.Finished(); }));
  cluster.Run(Seconds(70));
  for (int life = 0; life < 2; ++life) {
    cluster.Start(3);
    const bool told = cluster.RunUntil(
        Seconds(5), [&] { return !cluster[3].removed().empty() || !cluster.node(3).removed.empty(); });
    EXPECT_TRUE(told);
    cluster.Crash(3);
    cluster.Run(Seconds(70));
    ExpectGone(cluster, 3);
  }
}

TEST(CasesE, Case46_AForcedRemovalLeavesNoNameAnywhere) {
  Moving cluster(0, 5);
  // One replica alone may hold a write of W = 1: so a dead node goes by force only.
  const KeyspaceSpec one = {.name = "one", .r = {}, .w = {ReplicaCount::How::kOne, 0}};
  ASSERT_TRUE(cluster.Apply(0, LayoutChange::Create{one}).ok());
  cluster.Run(Seconds(2));
  cluster.Crash(4);
  MemberChanges changes = Moving::Removing(4);
  changes.lost = {IdOf(4)};
  ASSERT_TRUE(cluster.Apply(0, changes).ok());
  ASSERT_TRUE(cluster.RunUntil(Seconds(20), [&] { return cluster.Finished(); }));
  cluster.Run(Seconds(70));
  ExpectGone(cluster, 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(cluster.layout(i), cluster.layout(0)) << "one listing at all";
    EXPECT_EQ(std::ranges::count(cluster.layout(i).removed, IdOf(4)), 1) << "which says who left";
  }
  // Also after all of them started anew.
  for (int i = 0; i < 4; ++i) cluster.Crash(i);
  for (int i = 0; i < 4; ++i) cluster.Start(i);
  cluster.Run(Seconds(10));
  ExpectGone(cluster, 4);
  EXPECT_FALSE(cluster.Apply(0, Moving::Adding(4)).ok()) << "under that name nobody comes back";
}

TEST(CasesE, Case57_TheReplicasOfAKeyAreOnDistinctNodesWhoeverJoinsAndLeaves) {
  std::mt19937_64 random(57);
  Layout layout = FirstLayout({{NodeId{1}, "a"}});
  std::set<uint64_t> members = {1};
  uint64_t last = 1;
  for (int change = 0; change < 50; ++change) {
    MemberChanges changes;
    if (members.size() == 1 || (members.size() < 12 && random() % 5 < 3)) {
      changes.add.push_back({NodeId{++last}, std::string(1, static_cast<char>('a' + random() % 4)),
                             static_cast<uint32_t>(1 + random() % 3)});
      members.insert(last);
    } else {
      const uint64_t leaver = *std::next(members.begin(), static_cast<ptrdiff_t>(random() % members.size()));
      changes.remove.push_back(NodeId{leaver});
      members.erase(leaver);
    }
    const absl::StatusOr<Layout> moved = WithMembers(layout, changes);
    ASSERT_TRUE(moved.ok()) << moved.status();
    layout = moved->voters == MembersOf(*moved) ? *moved : *Finished(*moved, /*renew=*/false);
    const std::shared_ptr<const View> view = *MakeView(layout);
    for (const size_t n : {1, 2, 3, 5}) {
      Positions width = 0;
      for (const ReplicaRange& range : ReplicaRangesOf(view->ring, n)) {
        const std::set<MemberIndex> distinct(range.members.begin(), range.members.end());
        EXPECT_EQ(distinct.size(), range.members.size());
        EXPECT_EQ(distinct.size(), std::min(n, members.size())) << "n " << n << ", change " << change;
        width += range.width();
      }
      EXPECT_TRUE(width == kAllPositions) << "n " << n << ", change " << change;
    }
  }
}

// A new node where a dead one was: who it is, is its id and not its address.
TEST(CasesE, Case58_AFreshNodeAtTheAddressOfADeadOneIsNotTakenForIt) {
  Moving cluster(0, 4);
  cluster.Crash(3);
  cluster.Run(Seconds(10));
  const int fresh = cluster.Add(4, {"a0"});
  cluster.Move(fresh, "a3");
  cluster.Start(fresh);
  cluster.Run(Seconds(60));
  EXPECT_EQ(cluster.layout().epoch, 1u);
  EXPECT_LT(cluster[0].view()->ring.IndexOf(IdOf(fresh)), 0) << "it is given nothing";
  EXPECT_GE(cluster[0].view()->ring.IndexOf(IdOf(3)), 0) << "the dead one is a member still";
  EXPECT_FALSE(cluster[0].last_heard(IdOf(3)).has_value() &&
               cluster[0].detector().suspects() != std::vector{IdOf(3)})
      << "and not held for alive";
  EXPECT_EQ(cluster.LogLinesWith(fresh, "this node is not among the members"), 1);
  // What it takes to put it in that place.
  ASSERT_TRUE(cluster.Apply(0, Moving::Replacing(3, fresh)).ok());
  ASSERT_TRUE(cluster.RunUntil(Seconds(20), [&] { return cluster.Finished(); }));
  EXPECT_GE(cluster[0].view()->ring.IndexOf(IdOf(fresh)), 0);
  EXPECT_LT(cluster[0].view()->ring.IndexOf(IdOf(3)), 0);
}

// Whoever stands still in the middle of a change: nobody is removed, nobody is accused by who was paused, and
// the change ends as it was meant to.
TEST(CasesE, Case63_APauseInMidMovementEndsNothingAndAccusesNobody) {
  for (const int paused : {0, 2, 3}) {
    for (const MoveStep step : {MoveStep::kNone, MoveStep::kAck, MoveStep::kSync}) {
      SCOPED_TRACE("node " + std::to_string(paused));
      Moving cluster(1, 3);
      cluster.Allow(step);
      ASSERT_TRUE(cluster.Apply(1, Moving::Adding(3)).ok());
      cluster.Run(Seconds(1));
      cluster.Pause(paused, cluster.now() + Seconds(15));
      cluster.Run(Seconds(15) - Micros{1});
      for (int i = 0; i < 4; ++i) {
        if (i == paused) continue;
        EXPECT_EQ(cluster[i].detector().suspects(), std::vector{IdOf(paused)}) << "node " << i;
      }
      EXPECT_TRUE(cluster.layout(1).removed.empty());
      for (int i = 0; i < 50; ++i) {
        cluster.Run(Millis(100));
        EXPECT_TRUE(cluster[paused].detector().suspects().empty());
      }
      cluster.Allow(MoveStep::kDone);
      EXPECT_TRUE(cluster.RunUntil(Seconds(10), [&] { return cluster.Finished(); }));
      EXPECT_EQ(MembersOf(cluster.layout()), (std::vector{IdOf(0), IdOf(1), IdOf(2), IdOf(3)}));
    }
  }
}

}  // namespace
}  // namespace gyre
