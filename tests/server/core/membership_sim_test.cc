// Membership under faults: whatever is lost, doubled, reordered, cut off or crashed, one line of layouts. A
// seed is a test case and replays exactly.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/server/core/membership_cluster.h"

namespace gyre {
namespace {

// One node's address, or that of nobody, or the node's own: seeds as people write them.
std::vector<std::string> SomeSeeds(MembershipCluster& cluster, int nodes, int to_left) {
  std::vector<std::string> seeds = {"a" + std::to_string(to_left), "nobody"};
  seeds.push_back("a" + std::to_string(cluster.random()() % nodes));
  return seeds;
}

// One step of mischief.
void Harm(MembershipCluster& cluster) {
  const int i = static_cast<int>(cluster.random()() % cluster.size());
  switch (cluster.random()() % 6) {
    case 0:
      if (cluster.up(i)) cluster.Crash(i);
      return;
    case 1:
    case 2:
      if (!cluster.up(i)) cluster.Start(i);
      return;
    case 3:
      for (int j = 0; j < cluster.size(); ++j)
        cluster.node(j).side = static_cast<int>(cluster.random()() % 2);
      return;
    case 4:
      for (int j = 0; j < cluster.size(); ++j) cluster.node(j).side = 0;
      return;
    default:
      cluster.faults() = {.loss = cluster.Chance(.5) ? .2 : 0,
                          .duplicate = .1,
                          .delay_max = Millis(cluster.Chance(.3) ? 2000 : 50)};
  }
}

void Chaos(MembershipCluster& cluster, int steps) {
  for (int step = 0; step < steps; ++step) {
    Harm(cluster);
    for (int changes = static_cast<int>(cluster.random()() % 3); changes > 0; --changes) {
      const int i = static_cast<int>(cluster.random()() % cluster.size());
      if (cluster.up(i)) cluster.Create(i, Millis(500 + static_cast<int64_t>(cluster.random()() % 4000)));
    }
    cluster.Run(Millis(static_cast<int64_t>(cluster.random()() % 1500)));
  }
}

class UnderFaults : public testing::TestWithParam<int> {};

TEST_P(UnderFaults, OneLineOfLayouts) {
  const auto play = [&] {
    MembershipCluster cluster(GetParam());
    const int sizes[] = {3, 5, 8};
    const int size = sizes[GetParam() % 3];
    for (int i = 0; i < size; ++i) cluster.Add(size, SomeSeeds(cluster, size, std::max(i - 1, 0)));
    for (int i = 0; i < size; ++i) {
      if (cluster.Chance(.7)) cluster.Start(i);
    }
    Chaos(cluster, 40);
    cluster.Heal();
    cluster.Run(Seconds(12));
    EXPECT_TRUE(cluster.Agreed());
    EXPECT_EQ(cluster.cluster_ids().size(), 1u);
    const uint64_t last = cluster.Create(0, Seconds(5));
    cluster.Run(Seconds(5));
    EXPECT_NE(cluster.AnswerTo(last), nullptr);
    if (cluster.AnswerTo(last) != nullptr) {
      EXPECT_TRUE(cluster.AnswerTo(last)->ok()) << *cluster.AnswerTo(last);
    }
    EXPECT_TRUE(cluster.Agreed());
    cluster.CheckAnswers();
    return cluster.digest();
  };
  const uint64_t first = play();
  EXPECT_EQ(first, play()) << "seed " << GetParam() << " is not deterministic";
}

INSTANTIATE_TEST_SUITE_P(Seeds, UnderFaults, testing::Range(1, 301));

class MoreThanExpected : public testing::TestWithParam<int> {};

// Four to six nodes that name 3: whatever forms, no node is in two clusters (checked as each layout becomes
// active), and of four nodes only one cluster forms.
TEST_P(MoreThanExpected, NeverTwoClusters) {
  MembershipCluster cluster(GetParam());
  const int size = 4 + GetParam() % 3;
  for (int i = 0; i < size; ++i) {
    cluster.Add(3, {"a" + std::to_string(cluster.random()() % size),
                    "a" + std::to_string(cluster.random()() % size)});
  }
  for (int i = 0; i < size; ++i) {
    if (cluster.Chance(.5)) cluster.Start(i);
  }
  Chaos(cluster, 25);
  cluster.Heal();
  cluster.Run(Seconds(10));
  EXPECT_LE(cluster.cluster_ids().size(), size < 6 ? 1u : 2u);
  cluster.CheckAnswers();
}

INSTANTIATE_TEST_SUITE_P(Seeds, MoreThanExpected, testing::Range(1, 301));

}  // namespace
}  // namespace gyre
