// The clock that mints dots: leases, retirement, and floors far ahead.
#include "storage/causal/actor_clock.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

namespace gyre {
namespace {

constexpr uint64_t kNode = 7;
constexpr uint64_t kNow = 1'700'000'000'000;  // milliseconds
constexpr uint64_t kDrift = 10'000;
constexpr uint64_t kLease = CounterOfMillis(ActorClock::kLeaseMillis);

ActorState Persist(ActorClock& clock, uint64_t wall_ms, uint64_t floor = 0) {
  const ActorState state = clock.StateToPersist(wall_ms, floor, kDrift);
  clock.Persisted(state);
  return state;
}

std::optional<Dot> Mint(ActorClock& clock, uint64_t wall_ms, uint64_t floor = 0) {
  bool forced = false;
  const auto dot = clock.Mint(wall_ms, floor, kDrift, &forced);
  EXPECT_FALSE(forced);
  return dot;
}

TEST(ActorClock, MintsNothingBeforeItsFirstStateIsDurable) {
  ActorClock clock(kNode, std::nullopt, kNow);
  EXPECT_TRUE(clock.NeedsPersist(kNow));
  EXPECT_EQ(Mint(clock, kNow), std::nullopt);
  const ActorState state = Persist(clock, kNow);
  EXPECT_EQ(state, (ActorState{0, CounterOfMillis(kNow) + kLease, false}));
  EXPECT_FALSE(clock.NeedsPersist(kNow));
  EXPECT_EQ(Mint(clock, kNow), (Dot{{kNode, 0}, CounterOfMillis(kNow)}));
}

TEST(ActorClock, RisesWithinAMillisecondAndWhenTheClockStandsOrFalls) {
  ActorClock clock(kNode, std::nullopt, kNow);
  Persist(clock, kNow);
  EXPECT_EQ(Mint(clock, kNow)->counter, CounterOfMillis(kNow));
  EXPECT_EQ(Mint(clock, kNow)->counter, CounterOfMillis(kNow) + 1);
  EXPECT_EQ(Mint(clock, kNow - 5)->counter, CounterOfMillis(kNow) + 2);
  EXPECT_EQ(Mint(clock, kNow + 1)->counter, CounterOfMillis(kNow + 1));
  EXPECT_EQ(Mint(clock, kNow, CounterOfMillis(kNow + 3))->counter, CounterOfMillis(kNow + 3) + 1);
  EXPECT_EQ(clock.last_counter(), CounterOfMillis(kNow + 3) + 1);
}

TEST(ActorClock, StopsAtItsLeaseUntilALongerOneIsDurable) {
  ActorClock clock(kNode, std::nullopt, kNow);
  const ActorState state = Persist(clock, kNow);
  EXPECT_TRUE(Mint(clock, kNow + ActorClock::kLeaseMillis - 1));
  EXPECT_EQ(Mint(clock, kNow + ActorClock::kLeaseMillis), std::nullopt);
  const ActorState longer = Persist(clock, kNow + ActorClock::kLeaseMillis);
  EXPECT_EQ(longer.leased_counter, state.leased_counter + kLease);
  EXPECT_EQ(Mint(clock, kNow + ActorClock::kLeaseMillis)->counter, state.leased_counter);
}

TEST(ActorClock, AsksForALongerLeaseWhenLessThanHalfIsLeft) {
  ActorClock clock(kNode, std::nullopt, kNow);
  Persist(clock, kNow);
  EXPECT_FALSE(clock.NeedsPersist(kNow + ActorClock::kLeaseMillis / 2));
  EXPECT_TRUE(clock.NeedsPersist(kNow + ActorClock::kLeaseMillis / 2 + 1));
}

TEST(ActorClock, LeasesAboveTheFloorOfAWaitingMint) {
  ActorClock clock(kNode, std::nullopt, kNow);
  Persist(clock, kNow);
  const uint64_t floor = CounterOfMillis(kNow + kDrift) - 1;
  EXPECT_EQ(Mint(clock, kNow, floor), std::nullopt);
  Persist(clock, kNow, floor);
  EXPECT_EQ(Mint(clock, kNow, floor)->counter, floor + 1);
}

TEST(ActorClock, AStartAfterACrashRetiresAndBeginsAboveTheLease) {
  ActorClock first(kNode, std::nullopt, kNow);
  const ActorState left = Persist(first, kNow);
  Mint(first, kNow);

  ActorClock second(kNode, left, kNow - 60'000);
  EXPECT_TRUE(second.retire_pending());
  EXPECT_EQ(Mint(second, kNow), std::nullopt);
  const ActorState state = Persist(second, kNow - 60'000);
  EXPECT_EQ(state.incarnation, 1u);
  EXPECT_EQ(Mint(second, kNow - 60'000), (Dot{{kNode, 1}, left.leased_counter}));
}

TEST(ActorClock, AStartAfterACleanDrainGoesOnWithItsActor) {
  ActorClock first(kNode, std::nullopt, kNow);
  Persist(first, kNow);
  const Dot last = *Mint(first, kNow);
  const ActorState left = first.CleanState();
  EXPECT_EQ(left, (ActorState{0, last.counter + 1, true}));

  ActorClock second(kNode, left, kNow - 60'000);
  EXPECT_FALSE(second.retire_pending());
  EXPECT_EQ(Mint(second, kNow), std::nullopt) << "a crash now would look like a clean drain";
  const ActorState state = Persist(second, kNow - 60'000);
  EXPECT_FALSE(state.clean);
  EXPECT_EQ(Mint(second, kNow - 60'000), (Dot{{kNode, 0}, last.counter + 1}));
}

TEST(ActorClock, RetiresOnceTheNewIncarnationIsDurable) {
  ActorClock clock(kNode, std::nullopt, kNow);
  Persist(clock, kNow);
  const ActorState before = clock.StateToPersist(kNow + 1);
  clock.Retire();
  EXPECT_EQ(Mint(clock, kNow), std::nullopt);
  clock.Persisted(before);  // was on its way already: no retirement
  EXPECT_TRUE(clock.retire_pending());
  EXPECT_EQ(Mint(clock, kNow), std::nullopt);
  Persist(clock, kNow + 1);
  EXPECT_FALSE(clock.retire_pending());
  EXPECT_EQ(Mint(clock, kNow)->actor, (Actor{kNode, 1}));
}

TEST(ActorClock, ACleanDrainWithARetirementPendingLeavesTheSuccessor) {
  ActorClock clock(kNode, std::nullopt, kNow);
  Persist(clock, kNow);
  Mint(clock, kNow);
  clock.Retire();
  EXPECT_EQ(clock.CleanState().incarnation, 1u);
}

TEST(ActorClock, AForcedMintEndsItsActorAndLeavesTheClockAlone) {
  ActorClock clock(kNode, std::nullopt, kNow);
  Persist(clock, kNow);
  const Dot before = *Mint(clock, kNow);
  const uint64_t far = CounterOfMillis(kNow + 3'600'000);
  bool forced = false;
  EXPECT_EQ(clock.Mint(kNow, far, kDrift, &forced), (Dot{{kNode, 0}, far + 1}));
  EXPECT_TRUE(forced);
  EXPECT_TRUE(clock.retire_pending());
  EXPECT_EQ(clock.Mint(kNow, 0, kDrift, &forced), std::nullopt);
  EXPECT_FALSE(forced);
  const ActorState state = Persist(clock, kNow, far);
  EXPECT_EQ(state.leased_counter, before.counter + 1 + kLease) << "the lease stays a time";
  EXPECT_EQ(Mint(clock, kNow), (Dot{{kNode, 1}, before.counter + 1}));
}

TEST(ActorClock, AFloorAtTheAllowedDriftIsNotForced) {
  ActorClock clock(kNode, std::nullopt, kNow);
  Persist(clock, kNow);
  bool forced = true;
  EXPECT_TRUE(clock.Mint(kNow, CounterOfMillis(kNow + 100) - 1, 100, &forced));
  EXPECT_FALSE(forced);
  EXPECT_TRUE(clock.Mint(kNow, CounterOfMillis(kNow + 100), 100, &forced));
  EXPECT_TRUE(forced);
}

// Any number of lives, crashes, drains, retirements, clock jumps and floors: no dot twice, counters of one
// actor rise, and every counter that followed the clock was below a lease that was durable when it was
// minted.
TEST(ActorClock, NeverMintsADotTwice) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::optional<ActorState> disk;
    std::set<Dot> minted;
    std::optional<Dot> last;
    uint64_t wall = kNow;
    for (int life = 0; life < 8; ++life) {
      ActorClock clock(kNode, disk, wall);
      for (int step = 0; step < 40; ++step) {
        wall = wall + random() % 4'000 - 1'000;
        if (random() % 10 == 0) wall -= 30'000;
        if (random() % 10 == 0) clock.Retire();
        const uint64_t floor = random() % 4 == 0 ? CounterOfMillis(wall + random() % 40'000) : 0;
        if (random() % 3 == 0) {
          disk = clock.StateToPersist(wall, floor, kDrift);
          if (random() % 5 == 0) break;  // died before it heard of it
          clock.Persisted(*disk);
        }
        bool forced = false;
        const auto dot = clock.Mint(wall, floor, kDrift, &forced);
        if (!dot) continue;
        ASSERT_TRUE(minted.insert(*dot).second) << "seed " << seed;
        ASSERT_GT(dot->counter, floor);
        ASSERT_GE(dot->counter, CounterOfMillis(wall));
        ASSERT_EQ(dot->actor.incarnation, disk->incarnation);
        if (!forced) {
          ASSERT_LT(dot->counter, disk->leased_counter);
        }
        if (last && last->actor == dot->actor) {
          ASSERT_GT(dot->counter, last->counter);
        }
        if (last) {
          ASSERT_GE(dot->actor, last->actor);
        }
        last = dot;
      }
      if (random() % 2 == 0) disk = clock.CleanState();
    }
  }
}

}  // namespace
}  // namespace gyre
