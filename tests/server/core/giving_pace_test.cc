// How fast a node gives its rows to new replicas.
#include "server/core/giving_pace.h"

#include <gtest/gtest.h>

namespace gyre {
namespace {

constexpr NodeId kA{1};
constexpr NodeId kB{2};

FromPeer RequestOf(NodeId node, OpId op) {
  return {.from = node, .message = {.op = op, .body = peer::FetchPage{.bytes_max = 1000, .move = true}}};
}

TEST(GivingPace, ThePageAfterWaitsUntilTheOneBeforeIsPaid) {
  GivingPace pace;
  EXPECT_TRUE(pace.Admits(Micros{10}));
  pace.Charge(Micros{10}, Micros{1000});
  EXPECT_FALSE(pace.Admits(Micros{1009}));
  EXPECT_TRUE(pace.Admits(Micros{1010}));
  pace.Charge(Micros{1010}, Micros{0});
  EXPECT_TRUE(pace.Admits(Micros{1010})) << "an empty page costs nothing";
}

TEST(GivingPace, PagesThatWereAdmittedTogetherArePaidOneAfterTheOther) {
  GivingPace pace;
  pace.Charge(Micros{0}, Micros{1000});
  pace.Charge(Micros{0}, Micros{500});
  EXPECT_FALSE(pace.Admits(Micros{1499}));
  EXPECT_TRUE(pace.Admits(Micros{1500}));
}

TEST(GivingPace, DoesNotSaveUpWhatWasNotUsed) {
  GivingPace pace;
  pace.Charge(Micros{1'000'000}, Micros{1000});
  EXPECT_FALSE(pace.Admits(Micros{1'000'001}));
}

TEST(GivingPace, AnotherRateEndsWhatWasChargedByTheOneBefore) {
  GivingPace pace;
  pace.Charge(Micros{0}, Seconds(100'000));
  pace.Wait(RequestOf(kA, 1));
  pace.Forgive();
  EXPECT_EQ(pace.TakeDue(Micros{1})->from, kA);
}

TEST(GivingPace, WhoWaitsIsServedInTurnWhenItIsTime) {
  GivingPace pace;
  pace.Charge(Micros{0}, Micros{1000});
  EXPECT_EQ(pace.next_deadline(), std::nullopt);
  pace.Wait(RequestOf(kA, 1));
  pace.Wait(RequestOf(kB, 2));
  EXPECT_EQ(pace.next_deadline(), Micros{1000});
  EXPECT_EQ(pace.TakeDue(Micros{999}), std::nullopt);
  EXPECT_EQ(pace.TakeDue(Micros{1000})->from, kA);
  pace.Charge(Micros{1000}, Micros{1000});
  EXPECT_EQ(pace.TakeDue(Micros{1001}), std::nullopt);
  EXPECT_EQ(pace.TakeDue(Micros{2000})->from, kB);
  EXPECT_EQ(pace.TakeDue(Micros{2000}), std::nullopt);
}

TEST(GivingPace, OneRequestOfANodeWaitsInThePlaceOfTheFirstAndNoneOfWhoIsGone) {
  GivingPace pace;
  pace.Charge(Micros{0}, Micros{1000});
  pace.Wait(RequestOf(kA, 1));
  pace.Wait(RequestOf(kB, 2));
  pace.Wait(RequestOf(kA, 3));
  EXPECT_EQ(pace.TakeDue(Micros{1000})->message.op, OpId{3});
  pace.PeerLost(kB);
  EXPECT_EQ(pace.TakeDue(Micros{1000}), std::nullopt);
  EXPECT_EQ(pace.next_deadline(), std::nullopt);
}

}  // namespace
}  // namespace gyre
