// What this node makes of the clocks of the others.
#include "server/core/peer_clocks.h"

#include <gtest/gtest.h>

#include "tests/server/core/turns.h"

namespace gyre {
namespace {

constexpr uint64_t kDayMs = 24 * 3600 * 1000;
constexpr NodeId kStranger{99};

struct PeerClocksTest : testing::Test {
  TurnOfA a;
  PeerClocks clocks;
  uint64_t now_ms() const { return a.turn.now.wall_ms; }
};

TEST_F(PeerClocksTest, AloneItIsRight) { EXPECT_EQ(clocks.OffsetMs(a.turn), 0); }

TEST_F(PeerClocksTest, OfThreeTheOneThatDiffersIsOff) {
  a.turn.now.wall_ms += kDayMs;
  clocks.Heard(a.turn, kB, now_ms() - kDayMs + 3);
  clocks.Heard(a.turn, kC, now_ms() - kDayMs - 3);
  EXPECT_EQ(clocks.OffsetMs(a.turn), static_cast<int64_t>(kDayMs) - 3);
}

TEST_F(PeerClocksTest, AnotherNodesClockDoesNotMakeThisOneWrong) {
  clocks.Heard(a.turn, kB, now_ms() + kDayMs);
  clocks.Heard(a.turn, kC, now_ms() - 5);
  EXPECT_EQ(clocks.OffsetMs(a.turn), 0);
}

TEST_F(PeerClocksTest, OfTwoTheOneThatIsAheadIsOff) {
  clocks.Heard(a.turn, kB, now_ms() + kDayMs);
  EXPECT_EQ(clocks.OffsetMs(a.turn), 0);
  clocks.Heard(a.turn, kB, now_ms() - 700);
  EXPECT_EQ(clocks.OffsetMs(a.turn), 700);
}

TEST_F(PeerClocksTest, AClockGoesOnAfterItWasHeard) {
  clocks.Heard(a.turn, kB, now_ms());
  clocks.Heard(a.turn, kC, now_ms());
  a.turn.now.steady = a.turn.now.steady + Seconds(10);
  a.turn.now.wall_ms += 10'000;
  EXPECT_EQ(clocks.OffsetMs(a.turn), 0);
}

TEST_F(PeerClocksTest, StrangersAndClocksOfLongAgoDoNotCount) {
  clocks.Heard(a.turn, kStranger, now_ms() - 9000);
  EXPECT_EQ(clocks.OffsetMs(a.turn), 0);
  clocks.Heard(a.turn, kB, now_ms() - 9000);
  a.turn.now.steady = a.turn.now.steady + Seconds(61);
  EXPECT_EQ(clocks.OffsetMs(a.turn), 0);
}

}  // namespace
}  // namespace gyre
