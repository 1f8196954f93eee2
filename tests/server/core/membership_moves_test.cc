// A layout that moves data, from its choice to the end: step by step, aborted, interrupted, refused.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "server/core/layout_line.h"
#include "server/core/membership_codec.h"
#include "tests/server/core/moving_cluster.h"

namespace gyre {
namespace {

using Code = absl::StatusCode;

TEST(Moves, ANewcomerIsTakenInStepByStep) {
  Moving cluster;
  const std::vector<int> all = {0, 1, 2, 3};
  cluster.Allow(MoveStep::kNone);
  ASSERT_TRUE(cluster.Apply(1, Moving::Adding(3)).ok());
  cluster.Run(Seconds(3));
  EXPECT_TRUE(cluster.Agreed());
  EXPECT_EQ(cluster.layout().epoch, 2u);
  EXPECT_EQ(cluster.layout().voters.size(), 3u) << "a newcomer has no vote yet";
  EXPECT_TRUE(cluster.AtAll([](const Membership& m) {
    const Layouts& layouts = m.layouts();
    return layouts.moving() && layouts.other->layout.epoch == 1 && layouts.reads_other &&
           layouts.acked.empty() && !layouts.all_acked && layouts.mark() == LayoutMark{2, 2, true};
  }));

  // Three of four: what moves may not be fetched yet.
  cluster.Allow(MoveStep::kSync);
  cluster.node(3).lane_up_to = MoveStep::kNone;
  cluster.Run(Seconds(3));
  EXPECT_TRUE(cluster.AllKnow({0, 1, 2}, MoveStep::kAck));
  EXPECT_TRUE(cluster.AtAll([](const Membership& m) {
    return m.layouts().acked == std::vector{NodeId{1}, NodeId{2}, NodeId{3}} && !m.layouts().all_acked;
  }));

  cluster.Allow(MoveStep::kAck);
  cluster.Run(Seconds(3));
  EXPECT_TRUE(cluster.AllKnow(all, MoveStep::kAck));
  EXPECT_TRUE(cluster.AtAll([](const Membership& m) { return m.layouts().all_acked; }));

  // All got what they are given, but one: nobody reads by the new layout.
  cluster.Allow(MoveStep::kSync);
  cluster.node(2).lane_up_to = MoveStep::kAck;
  cluster.Run(Seconds(3));
  EXPECT_TRUE(cluster.AllKnow({0, 1, 3}, MoveStep::kSync));
  EXPECT_TRUE(cluster.AtAll([](const Membership& m) { return m.layouts().reads_other; }));

  // The lanes are told to read by the new one; it counts when they do.
  for (int i = 0; i < 4; ++i) cluster.node(i).lane_adopts = false;
  cluster.node(2).lane = {.stamp = cluster.node(2).layouts.stamp, .epoch = 2, .ready = true, .synced = true};
  cluster.Run(Seconds(3));
  EXPECT_TRUE(cluster.AllKnow(all, MoveStep::kSync));
  EXPECT_FALSE(cluster.AllKnow({0}, MoveStep::kSyncAck));
  EXPECT_TRUE(
      cluster.AtAll([](const Membership& m) { return !m.layouts().reads_other && m.layouts().moving(); }));

  for (int i = 0; i < 4; ++i) cluster.node(i).lane_adopts = true;
  cluster.Allow(MoveStep::kDone);
  EXPECT_TRUE(cluster.RunUntil(Seconds(3), [&] { return cluster.Finished(); }));
  EXPECT_EQ(cluster.layout().epoch, 3u);
  EXPECT_EQ(cluster.layout().fence, 2u);
  EXPECT_FALSE(cluster.layout().moves());
  EXPECT_EQ(cluster.layout().voters.size(), 4u);
}

TEST(Moves, ASmallClusterNeedsNoRoundsOfGossip) {
  Moving cluster;
  ASSERT_TRUE(cluster.Apply(0, Moving::Adding(3)).ok());
  const Micros begin = cluster.now();
  ASSERT_TRUE(cluster.RunUntil(Seconds(5), [&] { return cluster.Finished(); }));
  EXPECT_LT((cluster.now() - begin).value, Millis(1000).value);
}

TEST(Moves, UnderWayEverythingElseIsRefused) {
  Moving cluster(2);
  cluster.Allow(MoveStep::kAck);
  cluster.node(3).lane_up_to = MoveStep::kNone;
  ASSERT_TRUE(cluster.Apply(0, Moving::Adding(3)).ok());
  cluster.Run(Seconds(3));
  const absl::Status create = cluster.Apply(1, LayoutChange::Create{{.name = "carts", .r = {}, .w = {}}});
  EXPECT_EQ(create.code(), Code::kFailedPrecondition);
  EXPECT_EQ(create.message(),
            "data moves from the layout of epoch 1 to that of epoch 2; waiting for the ack of node "
            "0000000000000004; until that is over nothing can be changed, but gyre cluster moves abort goes "
            "back");
  EXPECT_EQ(cluster.Apply(1, LayoutChange::Drop{"default"}).code(), Code::kFailedPrecondition);
  EXPECT_EQ(cluster.Apply(1, Moving::Adding(4)).code(), Code::kFailedPrecondition);
  EXPECT_EQ(cluster.layout().epoch, 2u);
  EXPECT_EQ(cluster.Apply(1, LayoutChange::Abort{}).code(), Code::kOk);
}

TEST(Moves, ADeadMemberThatIsReplacedHoldsNothingUp) {
  Moving cluster;
  cluster.Crash(2);
  ASSERT_TRUE(cluster.Apply(0, Moving::Replacing(2, 3)).ok());
  ASSERT_TRUE(cluster.RunUntil(Seconds(8), [&] { return cluster.Finished(); }));
  EXPECT_EQ(MembersOf(cluster.layout()), (std::vector{NodeId{1}, NodeId{2}, NodeId{4}}));
  EXPECT_EQ(cluster.layout().removed, std::vector{NodeId{3}});
}

// One replica alone may hold a write of W = 1.
TEST(Moves, ADeadMemberWithWritesOfOneHoldsItUpUntilItIsGivenUp) {
  for (const bool given_up : {false, true}) {
    Moving cluster;
    KeyspaceSpec one = {.name = "one", .r = {}, .w = {ReplicaCount::How::kOne, 0}};
    ASSERT_TRUE(cluster.Apply(0, LayoutChange::Create{one}).ok());
    cluster.Run(Seconds(2));
    cluster.Crash(2);
    MemberChanges changes = Moving::Replacing(2, 3);
    if (given_up) changes.lost = {NodeId{3}};
    ASSERT_TRUE(cluster.Apply(0, changes).ok());
    EXPECT_EQ(cluster.RunUntil(Seconds(20), [&] { return cluster.Finished(); }), given_up);
    if (given_up) continue;
    const absl::Status refused = cluster.Apply(0, LayoutChange::Drop{"one"});
    EXPECT_NE(refused.message().find("the ack of node 0000000000000003"), std::string::npos) << refused;
    cluster.Start(2);
    EXPECT_TRUE(cluster.RunUntil(Seconds(5), [&] { return cluster.Finished(); })) << "it came back";
  }
}

TEST(Moves, AbortHalfwayGoesBackToWhatWas) {
  for (const MoveStep step : {MoveStep::kNone, MoveStep::kAck}) {
    Moving cluster;
    const Layout before = cluster.layout();
    cluster.Allow(step);
    ASSERT_TRUE(cluster.Apply(0, Moving::Replacing(2, 3)).ok());
    cluster.Run(Seconds(2));
    const Layout aborted = cluster.layout();
    ASSERT_TRUE(cluster.Apply(1, LayoutChange::Abort{}).ok());
    EXPECT_FALSE(cluster[1].layouts().reads_other) << "who goes back reads as before at once";
    cluster.Allow(MoveStep::kDone);
    ASSERT_TRUE(cluster.RunUntil(Seconds(5), [&] { return cluster.Finished(); }));
    EXPECT_EQ(cluster.layout(), AbortOf(aborted, before, {}));
    EXPECT_EQ(cluster.layout().epoch, 3u) << "its members are its voters: nothing is to be finished";
    EXPECT_EQ(cluster.Apply(0, LayoutChange::Abort{}).code(), Code::kFailedPrecondition);
    EXPECT_TRUE(cluster.Apply(0, Moving::Adding(3)).ok()) << "who came in vain may come again";
    EXPECT_TRUE(cluster.RunUntil(Seconds(5), [&] { return cluster.Finished(); }));
    EXPECT_EQ(cluster.layout().members.size(), 4u);
  }
}

TEST(Moves, ANewcomerThatDiesIsNoReasonToWait) {
  Moving cluster;
  ASSERT_TRUE(cluster
                  .Apply(0, LayoutChange::Create{{.name = "one",
                                                  .r = {ReplicaCount::How::kOne, 0},
                                                  .w = {ReplicaCount::How::kAll, 0}}})
                  .ok());
  cluster.Run(Seconds(2));
  cluster.Allow(MoveStep::kAck);
  ASSERT_TRUE(cluster.Apply(0, Moving::Adding(3)).ok());
  cluster.Crash(3);
  cluster.Run(Seconds(10));
  EXPECT_FALSE(cluster.AllOver());
  EXPECT_EQ(cluster.Apply(0, LayoutChange::Abort{{NodeId{2}}}).code(), Code::kInvalidArgument)
      << "a member stays one";
  ASSERT_TRUE(cluster.Apply(0, LayoutChange::Abort{{NodeId{4}}}).ok());
  EXPECT_TRUE(cluster.RunUntil(Seconds(5), [&] { return cluster.Finished(); }));
}

TEST(Moves, TheDeadNodeThatWasToBeReplacedDoesNotHoldUpTheWayBack) {
  Moving cluster;
  cluster.Crash(2);
  ASSERT_TRUE(cluster.Apply(0, Moving::Replacing(2, 3)).ok());
  cluster.Crash(3);
  cluster.Run(Seconds(5));
  EXPECT_FALSE(cluster.AllOver()) << "nobody has what the newcomer was to get";
  ASSERT_TRUE(cluster.Apply(0, LayoutChange::Abort{}).ok());
  EXPECT_TRUE(cluster.RunUntil(Seconds(5), [&] { return cluster.Finished(); }));
  EXPECT_EQ(MembersOf(cluster.layout()), (std::vector{NodeId{1}, NodeId{2}, NodeId{3}}));
}

TEST(Moves, OfTwoPlansAtTheSameMomentOneWins) {
  Moving cluster(2);
  const uint64_t first = cluster.Change(0, Seconds(4), cluster.PlanAt(0, Moving::Adding(3)));
  const uint64_t second = cluster.Change(1, Seconds(4), cluster.PlanAt(1, Moving::Adding(4)));
  cluster.Run(Seconds(5));
  const absl::Status& a = *cluster.AnswerTo(first);
  const absl::Status& b = *cluster.AnswerTo(second);
  EXPECT_NE(a.ok(), b.ok()) << a << b;
  const absl::Status& refused = a.ok() ? b : a;
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_NE(
      refused.message().find("the layout has changed since the plan was made (it was of epoch 1, digest"),
      std::string::npos)
      << refused;
  EXPECT_NE(refused.message().find("plan again"), std::string::npos);
  EXPECT_EQ(cluster.layout().members.size(), 4u);
}

TEST(Moves, APlanOfAnOlderLayoutIsRefused) {
  Moving cluster;
  const LayoutChange::Members plan = cluster.PlanAt(0, Moving::Adding(3));
  ASSERT_TRUE(cluster.Apply(1, LayoutChange::Create{{.name = "carts", .r = {}, .w = {}}}).ok());
  cluster.Run(Seconds(1));
  EXPECT_EQ(cluster.Apply(0, plan).code(), Code::kFailedPrecondition);
  EXPECT_EQ(cluster.layout().members.size(), 3u);
}

TEST(Moves, AMinorityChangesNothing) {
  Moving cluster;
  cluster.node(0).side = 1;
  cluster.node(3).side = 1;
  EXPECT_EQ(cluster.Apply(0, Moving::Adding(3)),
            absl::UnavailableError("1 of 3 voters answered; a majority of 2 is needed; nothing was changed"));
  EXPECT_EQ(cluster.layout().epoch, 1u);
  cluster.Heal();
  cluster.Run(Seconds(2));
  EXPECT_TRUE(cluster.Apply(0, Moving::Adding(3)).ok());
}

TEST(Moves, ResumesAtEveryStep) {
  for (int crash_after = 0; crash_after < 40; ++crash_after) {
    Moving cluster;
    const uint64_t ticket = cluster.Change(0, Seconds(4), cluster.PlanAt(0, Moving::Replacing(2, 3)));
    ASSERT_TRUE(cluster.RunUntil(Seconds(5), [&] { return cluster.AnswerTo(ticket) != nullptr; }));
    cluster.Run(Millis(crash_after * 15));
    for (int i = 0; i < 4; ++i) cluster.Crash(i);
    cluster.node(2).lane_up_to = MoveStep::kSync;
    cluster.StartAll();
    EXPECT_TRUE(cluster.RunUntil(Seconds(10), [&] {
      return cluster.AllOver() && cluster.layout().epoch == 3;
    })) << crash_after;
    EXPECT_EQ(cluster.layout().voters, MembersOf(cluster.layout()));
  }
}

TEST(Moves, AnAbortResumesAtEveryStep) {
  for (int crash_after = 0; crash_after < 20; ++crash_after) {
    Moving cluster;
    cluster.Allow(MoveStep::kAck);
    ASSERT_TRUE(cluster.Apply(0, Moving::Replacing(2, 3)).ok());
    cluster.Run(Seconds(1));
    cluster.Change(1, Seconds(4), LayoutChange::Abort{});
    cluster.Run(Millis(crash_after * 10));
    for (int i = 0; i < 4; ++i) cluster.Crash(i);
    cluster.Allow(MoveStep::kDone);
    cluster.StartAll();
    EXPECT_TRUE(cluster.RunUntil(Seconds(20), [&] { return cluster.Finished(); })) << crash_after;
  }
}

TEST(Moves, ANewcomerThatCrashesGoesOnWhereItWas) {
  Moving cluster;
  cluster.node(3).lane_up_to = MoveStep::kAck;
  ASSERT_TRUE(cluster.Apply(0, Moving::Adding(3)).ok());
  cluster.Run(Seconds(2));
  cluster.Crash(3);
  cluster.Run(Seconds(20));
  EXPECT_TRUE(cluster.AllKnow({0, 1, 2}, MoveStep::kSync));
  EXPECT_FALSE(cluster.AllOver());
  cluster.node(3).lane_up_to = MoveStep::kDone;
  cluster.Start(3);
  EXPECT_TRUE(cluster.RunUntil(Seconds(5), [&] { return cluster.Finished(); }));
}

TEST(Moves, TheLivingFinishWhatTheProposerOfAllDiedOf) {
  Moving cluster(0, 5);
  cluster.Allow(MoveStep::kSync);
  ASSERT_TRUE(cluster.Apply(0, Moving::Removing(4)).ok());
  cluster.Run(Seconds(2));
  cluster.Allow(MoveStep::kDone);
  ASSERT_TRUE(cluster.RunUntil(Seconds(5), [&] { return !cluster[1].layouts().moving(); }));
  cluster.Crash(0);
  EXPECT_TRUE(cluster.RunUntil(Seconds(10), [&] { return cluster.Finished(); }));
}

}  // namespace
}  // namespace gyre
