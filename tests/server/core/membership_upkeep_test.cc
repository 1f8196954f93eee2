// Who comes, who has left, who lost its store, and where they all live.
#include <gtest/gtest.h>
#include <string>
#include <variant>

#include "tests/server/core/moving_cluster.h"

namespace gyre {
namespace {

using Code = absl::StatusCode;

// A member that was cut off for all of it learns that the layout has retired, from whoever it meets.
TEST(Leaving, Case45_WhoWasRemovedWhileItWasAwayLearnsOfIt) {
  Moving cluster;
  cluster.node(2).side = 1;
  ASSERT_TRUE(cluster.Apply(0, Moving::Replacing(2, 3)).ok());
  cluster.Run(Seconds(10));
  EXPECT_FALSE(cluster[0].layouts().moving());
  EXPECT_EQ(cluster.layout(2).epoch, 1u);
  EXPECT_EQ(cluster.node(2).removed, "");
  cluster.node(2).side = 0;
  cluster.Run(Seconds(2));
  EXPECT_FALSE(cluster[2].layouts().moving());
  EXPECT_NE(cluster.node(2).removed.find("was removed from the cluster"), std::string::npos);
}

TEST(Leaving, Case48_WhoLeftInOrderStaysUntilItIsStoppedAndDoesNotStartAgain) {
  Moving cluster(0, 4);
  ASSERT_TRUE(cluster.Apply(0, Moving::Removing(3)).ok());
  ASSERT_TRUE(cluster.RunUntil(Seconds(8), [&] { return cluster.Finished(); }));
  cluster.Run(Seconds(1));
  EXPECT_EQ(cluster.node(3).removed, "");
  EXPECT_EQ(cluster.LogLinesWith(3, "it may be stopped"), 1);
  EXPECT_TRUE(cluster[0].known().contains(NodeId{4})) << "it may have something left to hand over";
  cluster.Crash(3);
  cluster.Run(Seconds(61));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(cluster[i].known().contains(NodeId{4})) << i;
  cluster.Start(3);
  EXPECT_NE(cluster[3].removed(), "") << "its process ends before it serves";
  const absl::Status again = cluster.Apply(0, Moving::Adding(3));
  EXPECT_EQ(again.code(), Code::kInvalidArgument);
}

// At each step all stop, and go on from what is on their disks.
TEST(Leaving, WhoHadNothingToGiveLeavesInOrder) {
  Moving cluster(0);
  Layout next = cluster.layout(2);
  next.epoch = 2;
  next.base_digest = cluster[2].view()->digest;
  next.members.pop_back();
  next.removed = {IdOf(2)};
  next.voters.pop_back();
  MembershipOutbox out;
  cluster[2].Step({cluster.now(), 0}, {next.cluster_id, IdOf(1), "a1", control::LayoutPush{next}}, out);
  EXPECT_EQ(out.removed, "");
  EXPECT_NE(cluster[2].removed(), "") << "but it does not start again";
}

TEST(Joining, NodesJoinByThemselvesOneAfterTheOther) {
  MembershipCluster cluster(1);
  for (int i = 0; i < 5; ++i) cluster.Add(3, {"a0"});
  for (int i = 0; i < 5; ++i) cluster.node(i).config.auto_join = true;
  for (int i = 0; i < 3; ++i) cluster.Start(i);
  cluster.Run(Seconds(4));
  cluster.Start(3);
  cluster.Start(4);
  ASSERT_TRUE(cluster.RunUntil(Seconds(20), [&] {
    return cluster.Agreed() && cluster[0].view()->layout.voters.size() == 5 && !cluster[4].layouts().moving();
  }));
  EXPECT_EQ(cluster[0].view()->layout.epoch, 5u) << "each moved and was finished";
  cluster.Run(Seconds(20));
  EXPECT_EQ(cluster[0].view()->layout.epoch, 5u);
}

// Each has its vote back before the next one loses its store.
TEST(LostStores, OneAfterTheOtherCostNoMajority) {
  Moving cluster(0);
  for (const int lost : {2, 1}) {
    cluster.Crash(lost);
    cluster.node(lost).disk = {Membership::VotesForgotten()};
    cluster.node(lost).view = nullptr;
    cluster.node(lost).layouts = {};
    cluster.Start(lost);
    const uint64_t epoch = cluster.layout().epoch;
    EXPECT_TRUE(cluster.RunUntil(Seconds(10),
                                 [&] { return cluster.Agreed() && cluster.layout().epoch == epoch + 1; }));
    cluster.Run(Seconds(10));
    EXPECT_EQ(cluster.layout().epoch, epoch + 1) << "once";
  }
  cluster.Crash(0);
  EXPECT_TRUE(cluster.Apply(1, LayoutChange::Create{{.name = "carts", .r = {}, .w = {}}}).ok());
}

TEST(LostStores, AllOfThemFormTheClusterAnew) {
  Moving cluster(0);
  for (int i = 0; i < 3; ++i) {
    cluster.Crash(i);
    cluster.node(i).disk = {Membership::VotesForgotten()};
    cluster.node(i).view = nullptr;
    cluster.node(i).layouts = {};
  }
  cluster.Run(Seconds(1));
  cluster.StartAll();
  cluster.Run(Seconds(4));
  EXPECT_TRUE(cluster.Apply(1, LayoutChange::Create{{.name = "carts", .r = {}, .w = {}}}).ok());
}

// A lane heard of it by data; gossip would take its time.
TEST(WantedLayouts, AreFetchedFromWhoIsNamed) {
  Moving cluster;
  cluster.node(2).side = 1;
  cluster.Allow(MoveStep::kNone);
  ASSERT_TRUE(cluster.Apply(0, Moving::Adding(3)).ok());
  cluster.Run(Millis(100));
  cluster.node(2).side = 0;
  ASSERT_EQ(cluster.layout(2).epoch, 1u);
  MembershipOutbox out;
  cluster[2].WantLayout({cluster.now(), 0}, NodeId{2}, out);
  ASSERT_EQ(out.sends.size(), 2u);
  EXPECT_EQ(out.sends[0].to_address, "a1");
  EXPECT_TRUE(std::holds_alternative<control::LayoutWanted>(out.sends[1].message.body));
  MembershipOutbox answer;
  cluster[1].Step({cluster.now(), 0}, out.sends[1].message, answer);
  const auto& push = std::get<control::LayoutPush>(answer.sends.at(0).message.body);
  EXPECT_EQ(push.layout.epoch, 2u);
  EXPECT_EQ(push.other->epoch, 1u);
  MembershipOutbox none;
  cluster[2].WantLayout({cluster.now(), 0}, NodeId{2}, none);
  EXPECT_TRUE(none.sends.empty()) << "it is asked already";
}

// Where a node can be reached has nothing to do with who it is.
TEST(Addresses, Case59_AllFindEachOtherAtNewAddressesByOneSeed) {
  Moving cluster(0, 12);
  for (int i = 0; i < 12; ++i) cluster.Crash(i);
  for (int i = 0; i < 12; ++i) {
    // The seed has the old address of another, and everybody has an address that some other had.
    cluster.Move(i, "a" + std::to_string((i + 5) % 12));
    cluster.node(i).config.seeds = {"a5"};
  }
  cluster.StartAll();
  cluster.Run(Seconds(8));
  for (int i = 0; i < 12; ++i) {
    for (int j = 0; j < 12; ++j) {
      EXPECT_EQ(cluster[i].known().at(IdOf(j)).peer_address, "a" + std::to_string((j + 5) % 12)) << i << j;
    }
    EXPECT_TRUE(cluster[i].detector().suspects().empty());
  }
}

}  // namespace
}  // namespace gyre
