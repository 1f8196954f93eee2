// Membership under faults: whatever is lost, doubled, reordered, cut off or crashed, one line of layouts. A
// seed is a test case and replays exactly.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "server/core/layout_line.h"
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

// Members come, go and are replaced while all of that happens; changes are aborted; lanes are slow.
class MovesUnderFaults : public testing::TestWithParam<int> {
 protected:
  static constexpr int kNodes = 7;

  static NodeId IdOf(int i) { return NodeId{static_cast<uint64_t>(i) + 1}; }
  // A change of the members as node `i` knows them, as random as its asker's wishes.
  static LayoutChange::What SomeChange(MembershipCluster& cluster, int i) {
    const View& view = *cluster[i].view();
    if (cluster.Chance(.3)) return LayoutChange::Abort{};
    LayoutChange::Members change{.base_digest = view.digest, .base_epoch = view.layout.epoch};
    const auto member = [&] {
      return view.layout.members[cluster.random()() % view.layout.members.size()].id;
    };
    std::vector<NodeId> strangers;
    for (int j = 0; j < kNodes; ++j) {
      const bool removed = std::ranges::binary_search(view.layout.removed, IdOf(j));
      if (view.ring.IndexOf(IdOf(j)) < 0 && !removed) strangers.push_back(IdOf(j));
    }
    const bool shrink = strangers.empty() || (cluster.Chance(.2) && view.layout.members.size() > 3);
    if (shrink) {
      if (view.layout.members.size() > 2) change.changes.remove.push_back(member());
    } else if (cluster.Chance(.4)) {
      change.changes.replace.push_back({member(), {.node = strangers[0], .zone = ""}});
    } else {
      change.changes.add.push_back({.node = strangers[cluster.random()() % strangers.size()], .zone = ""});
    }
    return change;
  }
  // A process whose node was removed ends.
  static void EndRemoved(MembershipCluster& cluster) {
    for (int i = 0; i < kNodes; ++i) {
      if (cluster.up(i) && !cluster.node(i).removed.empty()) cluster.Crash(i);
    }
  }
  // No data moves, and the members are the voters, as all that are up know.
  static bool AllOver(MembershipCluster& cluster) {
    if (!cluster.Agreed()) return false;
    for (int i = 0; i < kNodes; ++i) {
      if (!cluster.up(i)) continue;
      const Layouts& layouts = cluster[i].layouts();
      if (layouts.moving() || layouts.view->layout.voters != MembersOf(layouts.view->layout)) return false;
    }
    return true;
  }
  static void Chaos(MembershipCluster& cluster) {
    for (int step = 0; step < 60; ++step) {
      if (cluster.Chance(.5)) Harm(cluster);
      for (int i = 0; i < kNodes; ++i) {
        if (cluster.Chance(.3)) cluster.node(i).lane_up_to = static_cast<MoveStep>(cluster.random()() % 5);
        cluster.node(i).lane_adopts = cluster.Chance(.8);
      }
      const int i = static_cast<int>(cluster.random()() % kNodes);
      if (cluster.up(i) && cluster[i].view() && cluster.Chance(.6)) {
        cluster.Change(i, Millis(500 + static_cast<int64_t>(cluster.random()() % 4000)),
                       SomeChange(cluster, i));
      }
      cluster.Run(Millis(static_cast<int64_t>(cluster.random()() % 1500)));
      EndRemoved(cluster);
    }
  }
};

TEST_P(MovesUnderFaults, OneLineOfLayoutsAndEachMovementEnds) {
  const auto play = [&] {
    MembershipCluster cluster(GetParam());
    for (int i = 0; i < kNodes; ++i) cluster.Add(3, {"a0", "a1"});
    for (int i = 0; i < 3; ++i) cluster.Start(i);
    cluster.Run(Seconds(4));
    for (int i = 3; i < kNodes; ++i) cluster.Start(i);
    cluster.Run(Seconds(2));
    Chaos(cluster);
    cluster.Heal();
    for (int i = 0; i < kNodes; ++i) {
      cluster.node(i).lane_up_to = MoveStep::kDone;
      cluster.node(i).lane_adopts = true;
    }
    cluster.Run(Seconds(5));  // what was asked for by now is answered
    EXPECT_TRUE(cluster.RunUntil(Seconds(40), [&] { return AllOver(cluster); }));
    // The first change may find one that a minority has accepted, and carry that on instead.
    absl::Status last = absl::UnknownError("never asked");
    for (int attempt = 0; attempt < 2 && !last.ok(); ++attempt) {
      int asked = 0;
      while (!cluster.up(asked)) ++asked;
      const uint64_t ticket = cluster.Create(asked, Seconds(5));
      cluster.Run(Seconds(6));
      last = *cluster.AnswerTo(ticket);
      EXPECT_TRUE(last.ok() || last.code() == absl::StatusCode::kFailedPrecondition) << last;
      EXPECT_TRUE(cluster.RunUntil(Seconds(20), [&] { return AllOver(cluster); }));
      EndRemoved(cluster);
    }
    EXPECT_TRUE(last.ok()) << last;
    EXPECT_TRUE(cluster.Agreed());
    cluster.CheckAnswers();
    return cluster.digest();
  };
  const uint64_t first = play();
  EXPECT_EQ(first, play()) << "seed " << GetParam() << " is not deterministic";
}

INSTANTIATE_TEST_SUITE_P(Seeds, MovesUnderFaults, testing::Range(1, 201));

class AbortAtTheLastMoment : public testing::TestWithParam<int> {};

// The members begin to read by the new layout while an operator wants to go back: it ends one way,
// everywhere.
TEST_P(AbortAtTheLastMoment, RetiresOrIsGoneBackFrom) {
  MembershipCluster cluster(GetParam());
  const int members = 3 + GetParam() % 3;
  for (int i = 0; i <= members; ++i) cluster.Add(members, {"a0"});
  for (int i = 0; i < members; ++i) cluster.Start(i);
  cluster.Run(Seconds(4));
  cluster.Start(members);
  cluster.Run(Seconds(2));
  for (int i = 0; i <= members; ++i) cluster.node(i).lane_up_to = MoveStep::kAck;
  const View& view = *cluster[0].view();
  LayoutChange::Members change{.base_digest = view.digest, .base_epoch = 1};
  const NodeId newcomer{static_cast<uint64_t>(members) + 1};
  change.changes.replace.push_back({NodeId{1}, {.node = newcomer, .zone = ""}});
  cluster.Change(1, Seconds(4), change);
  cluster.Run(Seconds(4));
  cluster.faults() = {.loss = .05, .duplicate = .1, .delay_max = Millis(500)};
  for (int i = 0; i <= members; ++i) cluster.node(i).lane_up_to = MoveStep::kDone;
  cluster.Run(Millis(static_cast<int64_t>(cluster.random()() % 700)));
  cluster.Change(static_cast<int>(cluster.random()() % (members + 1)), Millis(3000), LayoutChange::Abort{});
  cluster.Run(Millis(static_cast<int64_t>(cluster.random()() % 1500)));
  const int crashed = static_cast<int>(cluster.random()() % (members + 1));
  cluster.Crash(crashed);
  cluster.Run(Seconds(4));
  cluster.Heal();
  EXPECT_TRUE(cluster.RunUntil(Seconds(30), [&] {
    for (int i = 0; i <= members; ++i) {
      if (cluster[i].layouts().moving()) return false;
    }
    return cluster.Agreed();
  }));
}

INSTANTIATE_TEST_SUITE_P(Seeds, AbortAtTheLastMoment, testing::Range(1, 501));

}  // namespace
}  // namespace gyre
