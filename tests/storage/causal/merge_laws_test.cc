// The laws of records, on thousands of reachable states, against the naive model.
#include <gtest/gtest.h>

#include "tests/storage/causal/world.h"

namespace gyre {
namespace {

using testing::Expected;
using testing::MergeReplicas;
using testing::Replica;
using testing::World;

std::set<Dot> DotsOf(const Record& record) {
  std::set<Dot> dots;
  for (const Version& version : record.versions) dots.insert(version.dot);
  return dots;
}

// What every record must be, however it was made.
void ExpectWellFormed(const Record& record) {
  for (size_t i = 0; i < record.versions.size(); ++i) {
    EXPECT_TRUE(record.seen.Covers(record.versions[i].dot));
    if (i > 0) {
      EXPECT_LT(record.versions[i - 1].dot, record.versions[i].dot);
    }
  }
  for (size_t i = 0; i < record.superseded.size(); ++i) {
    EXPECT_TRUE(record.seen.Covers(record.superseded[i].by));
    if (i > 0) {
      EXPECT_LT(record.superseded[i - 1].write_id, record.superseded[i].write_id);
    }
    for (const Version& version : record.versions) EXPECT_NE(version.write_id, record.superseded[i].write_id);
  }
}

class Laws : public ::testing::TestWithParam<std::tuple<ConflictRule, uint32_t>> {
 protected:
  const ConflictRule rule_ = std::get<0>(GetParam());
  const uint32_t seed_ = std::get<1>(GetParam());
};

// Case 20 (voldemort/voldemort#21): a record holds exactly the maximal elements of what it has seen.
TEST_P(Laws, EveryStateIsWhatTheModelSays) {
  World world(seed_, rule_);
  world.Run(60);
  for (const Replica& state : world.history()) {
    ExpectWellFormed(state.record);
    ASSERT_EQ(DotsOf(state.record), Expected(world.events(), state, rule_));
    for (const auto& [dot, event] : world.events()) {
      ASSERT_EQ(state.record.seen.Covers(dot), state.known.contains(dot)) << ToString(dot);
    }
    std::set<uint64_t> dead;
    for (const SupersededRetry& retry : state.record.superseded) dead.insert(retry.write_id.low);
    if (rule_ == ConflictRule::kSiblings) {
      ASSERT_EQ(dead, DeadIds(world.events(), state));
    } else {
      ASSERT_TRUE(dead.empty());
    }
  }
}

TEST_P(Laws, MergeIsAJoin) {
  World world(seed_, rule_);
  world.Run(60);
  for (int i = 0; i < 200; ++i) {
    const auto pick = [&] { return world.history()[world.Below(world.history().size())]; };
    const Replica a = pick();
    const Replica b = pick();
    const Replica c = pick();
    const Record ab = Merge(a.record, b.record, rule_);
    ASSERT_EQ(ab, Merge(b.record, a.record, rule_));
    ASSERT_EQ(a.record, Merge(a.record, a.record, rule_));
    ASSERT_EQ(ab, Merge(ab, a.record, rule_));
    ASSERT_EQ(Merge(ab, c.record, rule_), Merge(a.record, Merge(b.record, c.record, rule_), rule_));
    ASSERT_EQ(a.record, Merge(a.record, Record{}, rule_));
    ASSERT_TRUE(ab.seen.Covers(a.record.seen));
    ASSERT_TRUE(ab.seen.Covers(b.record.seen));
    ExpectWellFormed(ab);
    ASSERT_EQ(DotsOf(ab), Expected(world.events(), MergeReplicas(a, b, rule_), rule_));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Laws,
                         ::testing::Combine(::testing::Values(ConflictRule::kSiblings,
                                                              ConflictRule::kLastWriteWins),
                                            ::testing::Range(0u, 100u)));

// Vectors alone, of any shape.
VersionVector AnyVector(std::mt19937& random) {
  VersionVector vector;
  for (size_t entries = random() % 9; entries > 0; --entries) {
    vector.Add(testing::DotOf(random() % 6, 1 + random() % 8, random() % 2));
  }
  return vector;
}

VersionVector Joined(VersionVector a, const VersionVector& b) {
  a.Join(b);
  return a;
}

TEST(Vectors, JoinIsTheLeastUpperBound) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const VersionVector a = AnyVector(random);
    const VersionVector b = AnyVector(random);
    const VersionVector joined = Joined(a, b);
    ASSERT_EQ(joined, Joined(b, a));
    ASSERT_EQ(joined, Joined(joined, a));
    ASSERT_TRUE(joined.Covers(a));
    ASSERT_TRUE(joined.Covers(b));
    ASSERT_EQ(a.Covers(b), joined == a);
    ASSERT_EQ(joined.Max(), std::max(a.Max(), b.Max()));
    for (const VersionVector::Entry& entry : joined.entries()) {
      ASSERT_EQ(entry.counter, std::max(a.CounterOf(entry.actor), b.CounterOf(entry.actor)));
    }
  }
}

}  // namespace
}  // namespace gyre
