// How fast a node gives its rows to new replicas.
#include "server/core/giving_pace.h"

#include <gtest/gtest.h>

namespace gyre {
namespace {

constexpr uint64_t kRate = 1'000'000;  // so that a byte lasts a microsecond
constexpr NodeId kA{1};
constexpr NodeId kB{2};

FromPeer RequestOf(NodeId node, OpId op) {
  return {.from = node, .message = {.op = op, .body = peer::FetchPage{.bytes_max = 1000, .move = true}}};
}

TEST(GivingPace, ThePageAfterWaitsUntilTheOneBeforeIsPaid) {
  GivingPace pace;
  EXPECT_TRUE(pace.Admits(Micros{10}));
  pace.Charge(Micros{10}, 1000, kRate);
  EXPECT_FALSE(pace.Admits(Micros{1009}));
  EXPECT_TRUE(pace.Admits(Micros{1010}));
  pace.Charge(Micros{1010}, 0, kRate);
  EXPECT_TRUE(pace.Admits(Micros{1010})) << "an empty page costs nothing";
}

TEST(GivingPace, PagesThatWereAdmittedTogetherArePaidOneAfterTheOther) {
  GivingPace pace;
  pace.Charge(Micros{0}, 1000, kRate);
  pace.Charge(Micros{0}, 500, kRate);
  EXPECT_FALSE(pace.Admits(Micros{1499}));
  EXPECT_TRUE(pace.Admits(Micros{1500}));
}

TEST(GivingPace, DoesNotSaveUpWhatWasNotUsed) {
  GivingPace pace;
  pace.Charge(Micros{1'000'000}, 1000, kRate);
  EXPECT_FALSE(pace.Admits(Micros{1'000'001}));
}

TEST(GivingPace, WhoWaitsIsServedInTurnWhenItIsTime) {
  GivingPace pace;
  pace.Charge(Micros{0}, 1000, kRate);
  EXPECT_EQ(pace.next_deadline(), std::nullopt);
  pace.Wait(RequestOf(kA, 1));
  pace.Wait(RequestOf(kB, 2));
  EXPECT_EQ(pace.next_deadline(), Micros{1000});
  EXPECT_EQ(pace.TakeDue(Micros{999}), std::nullopt);
  EXPECT_EQ(pace.TakeDue(Micros{1000})->from, kA);
  pace.Charge(Micros{1000}, 1000, kRate);
  EXPECT_EQ(pace.TakeDue(Micros{1001}), std::nullopt);
  EXPECT_EQ(pace.TakeDue(Micros{2000})->from, kB);
  EXPECT_EQ(pace.TakeDue(Micros{2000}), std::nullopt);
}

TEST(GivingPace, OneRequestOfANodeWaitsAndNoneOfWhoIsGone) {
  GivingPace pace;
  pace.Charge(Micros{0}, 1000, kRate);
  pace.Wait(RequestOf(kA, 1));
  pace.Wait(RequestOf(kA, 2));
  pace.Wait(RequestOf(kB, 3));
  pace.PeerLost(kB);
  EXPECT_EQ(pace.TakeDue(Micros{1000})->message.op, OpId{2});
  EXPECT_EQ(pace.TakeDue(Micros{1000}), std::nullopt);
  EXPECT_EQ(pace.next_deadline(), std::nullopt);
}

}  // namespace
}  // namespace gyre
