// Section E, membership and rebalancing, as far as data moves: what each node has, and what clients see
// meanwhile.
#include <gtest/gtest.h>
#include <set>

#include "storage/format/row_key.h"
#include "tests/cases/scripted_cluster.h"

namespace gyre::cases {
namespace {

std::string KeyOf(int i) { return "key" + std::to_string(i); }

struct Moving {
  explicit Moving(int nodes, int members, int keys)
      : cluster({.nodes = nodes, .members = members}), keys(keys) {
    for (int i = 0; i < keys; ++i) Write(i);
  }
  void Write(int i) {
    // A node that is a member may coordinate; others hand on.
    cluster.Put(static_cast<size_t>(i) % 3, {.key = KeyOf(i), .value = "v" + std::to_string(i)});
  }
  // Every key, at its quorum, by way of each of these nodes.
  void ExpectAllReadable(const std::vector<size_t>& by) {
    for (int i = 0; i < keys; ++i) {
      for (const size_t node : by) {
        EXPECT_EQ(cluster.Values(node, KeyOf(i), {}), std::vector<std::string>{"v" + std::to_string(i)})
            << KeyOf(i) << " by way of node " << node;
      }
    }
  }
  // Each node holds just what the layout gives it.
  void ExpectInPlace() {
    for (size_t node = 0; node < cluster.size(); ++node) {
      if (!cluster.alive(node)) continue;
      size_t given = 0;
      for (int i = 0; i < keys; ++i) {
        const std::vector<size_t> replicas = cluster.ReplicasOf(KeyOf(i));
        if (std::ranges::find(replicas, node) != replicas.end()) ++given;
      }
      EXPECT_EQ(cluster.RowsOnDisk(node), given) << "node " << node;
    }
  }

  ScriptedCluster cluster;
  int keys;
};

TEST(CasesE, ANewNodeFetchesWhatItIsGivenAndTheOthersDropIt) {
  Moving m(4, 3, 400);
  m.cluster.BeginMove(m.cluster.WithMembers({0, 1, 2, 3}));
  ASSERT_TRUE(m.cluster.RunUntilMoved());
  m.ExpectInPlace();
  m.ExpectAllReadable({0, 3});
  m.cluster.Quiesce();
}

// 50, 54, 55, 56: what is written or read while data moves.
TEST(CasesE, NothingIsMissedWhileANodeJoins) {
  Moving m(4, 3, 300);
  m.cluster.BeginMove(m.cluster.WithMembers({0, 1, 2, 3}));
  int read = 0;
  while (m.cluster.moving()) {
    m.Write(m.keys++);
    m.Write(m.keys++);
    const int i = read++ % m.keys;
    EXPECT_EQ(m.cluster.Values(static_cast<size_t>(i) % 4, KeyOf(i), {}),
              std::vector<std::string>{"v" + std::to_string(i)});
    ASSERT_LT(m.keys, 20'000) << "the movement does not end";
  }
  ASSERT_TRUE(m.cluster.RunUntilMoved());
  m.ExpectAllReadable({1, 3});
  m.cluster.Quiesce();
  m.ExpectInPlace();
}

TEST(CasesE, ANodeThatLeavesHandsOverAllThatItHas) {
  Moving m(4, 4, 400);
  m.cluster.BeginMove(m.cluster.WithMembers({0, 1, 2}));
  ASSERT_TRUE(m.cluster.RunUntilMoved());
  m.ExpectInPlace();
  EXPECT_EQ(m.cluster.RowsOnDisk(3), 0u);
  m.cluster.Kill(3);
  m.ExpectAllReadable({0, 1, 2});
}

// The successor of a dead node compares with all that are left.
TEST(CasesE, ADeadNodeIsReplaced) {
  Moving m(4, 3, 300);
  m.cluster.Kill(2);
  m.cluster.Run(Seconds(1));
  Layout next = m.cluster.WithMembers({0, 1, 3});
  next.members[2].tokens = m.cluster.view().layout.members[2].tokens;
  m.cluster.BeginMove(next);
  ASSERT_TRUE(m.cluster.RunUntilMoved());
  m.ExpectAllReadable({0, 1, 3});
  m.cluster.Quiesce();
  m.ExpectInPlace();
}

TEST(CasesE, TheNumberOfReplicasIsRaisedAndLowered) {
  Moving m(5, 5, 300);
  for (const int n : {5, 2, 3}) {
    Layout next = m.cluster.view().layout;
    next.keyspaces[0].n = n;
    m.cluster.BeginMove(next);
    ASSERT_TRUE(m.cluster.RunUntilMoved()) << n;
    m.ExpectInPlace();
    m.ExpectAllReadable({0, 4});
  }
}

// Giver and taker lose their processes again and again; what was fetched is not fetched again.
TEST(CasesE, AMovementGoesOnAfterCrashes) {
  Moving m(4, 3, 3000);
  m.cluster.BeginMove(m.cluster.WithMembers({0, 1, 2, 3}));
  for (int crash = 0; crash < 10 && m.cluster.moving(); ++crash) {
    m.cluster.Run(Millis(60));
    const size_t victim = crash % 2 == 0 ? 3 : static_cast<size_t>(crash) % 3;
    m.cluster.Kill(victim);
    m.cluster.Run(Millis(100));
    m.cluster.Start(victim);
    m.cluster.Run(Millis(100));
  }
  ASSERT_TRUE(m.cluster.RunUntilMoved());
  m.ExpectInPlace();
  m.ExpectAllReadable({0});
}

TEST(CasesE, AMovementIsAbandonedHalfWay) {
  Moving m(4, 3, 2000);
  m.cluster.BeginMove(m.cluster.WithMembers({0, 1, 2, 3}));
  ASSERT_TRUE(m.cluster.RunUntil([&] { return m.cluster.core(3).movement().keys_received() > 0; }));
  ASSERT_TRUE(m.cluster.moving());
  for (int i = 0; i < 50; ++i) m.Write(m.keys++);
  m.cluster.AbortMove();
  for (int i = 0; i < 50; ++i) m.Write(m.keys++);
  ASSERT_TRUE(m.cluster.RunUntilMoved());
  m.ExpectInPlace();
  EXPECT_EQ(m.cluster.RowsOnDisk(3), 0u);
  m.ExpectAllReadable({0, 1});
  m.cluster.Quiesce();
}

// What was deleted before, and collected, does not come back by way of what a node held of old.
TEST(CasesE, WhatANodeHeldOfOldIsNoNewsWhenItIsGivenTheRangeAgain) {
  Moving m(4, 4, 200);
  m.cluster.BeginMove(m.cluster.WithMembers({0, 1, 2}));
  ASSERT_TRUE(m.cluster.RunUntilMoved());
  for (int i = 0; i < m.keys; ++i) m.cluster.Delete(0, {.key = KeyOf(i)});
  ASSERT_TRUE(m.cluster.RunUntilCollected());
  m.cluster.BeginMove(m.cluster.WithMembers({0, 1, 2, 3}));
  ASSERT_TRUE(m.cluster.RunUntilMoved());
  for (int i = 0; i < m.keys; ++i) EXPECT_TRUE(m.cluster.Values(3, KeyOf(i), {}).empty());
  m.cluster.Quiesce();
}

// Tombstones go away after a movement as before one.
TEST(CasesE, TheStableCutRisesAgainWhenDataHasMoved) {
  Moving m(4, 3, 100);
  m.cluster.BeginMove(m.cluster.WithMembers({0, 1, 2, 3}));
  for (int i = 0; i < 50; ++i) m.cluster.Delete(1, {.key = KeyOf(i)});
  ASSERT_TRUE(m.cluster.RunUntilMoved());
  ASSERT_TRUE(m.cluster.RunUntilCollected());
  m.cluster.Quiesce();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(m.cluster.Values(3, KeyOf(i)).empty());
}

}  // namespace
}  // namespace gyre::cases
