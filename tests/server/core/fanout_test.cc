// Whom a fanout asks, and when.
#include "server/core/fanout.h"

#include <gtest/gtest.h>

#include "tests/server/core/turns.h"

namespace gyre {
namespace {

struct FanoutTest : testing::Test, TurnOfA {
  std::vector<NodeId> asked;
  auto Ask() {
    return [this](NodeId to) { asked.push_back(to); };
  }
  std::vector<NodeId> Take() { return std::exchange(asked, {}); }
  Fanout Of(int need) { return Fanout(SetOf(*view, 3), need); }
};
using Nodes = std::vector<NodeId>;

TEST_F(FanoutTest, AsksAsManyAsMustAnswerItselfFirst) {
  const Nodes wanted[] = {{kA}, {kA, kB}, {kA, kB, kC}};
  for (int need = 1; need <= 3; ++need) {
    Fanout fanout = Of(need);
    fanout.Start(turn, Ask());
    EXPECT_EQ(Take(), wanted[need - 1]);
  }
}

TEST_F(FanoutTest, WhoHasNoLinkCountsAsRefusal) {
  up.erase(kB);
  Fanout two = Of(2);
  two.Start(turn, Ask());
  EXPECT_EQ(Take(), (Nodes{kA, kC}));
  EXPECT_EQ(two.verdict(), Verdict::kPending);
  Fanout all = Of(3);
  all.Start(turn, Ask());
  EXPECT_EQ(Take(), Nodes{}) << "it is lost before it begins";
  EXPECT_EQ(all.verdict(), Verdict::kLost);
}

TEST_F(FanoutTest, OneThatFailsIsMadeUpForOnce) {
  Fanout fanout = Of(2);
  fanout.Start(turn, Ask());
  Take();
  EXPECT_EQ(fanout.Failed(turn, fanout.Awaited(kB), Ask()), Verdict::kPending);
  EXPECT_EQ(Take(), Nodes{kC});
  EXPECT_EQ(fanout.Failed(turn, fanout.Awaited(kC), Ask()), Verdict::kLost);
  EXPECT_EQ(Take(), Nodes{});
}

TEST_F(FanoutTest, AHedgeAsksOneMoreUntilNoneIsLeft) {
  Fanout fanout = Of(1);
  fanout.Start(turn, Ask());
  fanout.AskNext(turn, Ask());
  fanout.AskNext(turn, Ask());
  fanout.AskNext(turn, Ask());
  EXPECT_EQ(Take(), (Nodes{kA, kB, kC}));
}

TEST_F(FanoutTest, OnlyWhatWasAskedAndOnlyOnceIsAwaited) {
  Fanout fanout = Of(2);
  fanout.Start(turn, Ask());
  EXPECT_EQ(fanout.Awaited(kC), -1) << "was not asked";
  EXPECT_EQ(fanout.Awaited(NodeId{9}), -1) << "is no replica";
  EXPECT_EQ(fanout.Yes(fanout.Awaited(kA)), Verdict::kPending);
  EXPECT_EQ(fanout.Awaited(kA), -1) << "has answered";
  EXPECT_TRUE(fanout.waiting());
  EXPECT_EQ(fanout.Yes(fanout.Awaited(kB)), Verdict::kMet);
  EXPECT_FALSE(fanout.waiting());
}

TEST_F(FanoutTest, ABrokenLinkIsAFailureOfWhoWasAskedAndARefusalOfWhoWasNot) {
  Fanout fanout = Of(2);
  fanout.Start(turn, Ask());
  Take();
  EXPECT_EQ(fanout.Lost(turn, kC, Ask()), Verdict::kPending);
  EXPECT_EQ(Take(), Nodes{});
  EXPECT_EQ(fanout.Lost(turn, kC, Ask()), Verdict::kPending) << "twice is once";
  EXPECT_EQ(fanout.Lost(turn, NodeId{9}, Ask()), Verdict::kPending) << "no replica";
  EXPECT_EQ(fanout.Lost(turn, kB, Ask()), Verdict::kLost);
}

}  // namespace
}  // namespace gyre
