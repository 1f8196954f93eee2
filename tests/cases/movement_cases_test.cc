// Section E, membership and rebalancing, as far as data moves: what each node has, and what clients see
// meanwhile.
#include <gtest/gtest.h>
#include <optional>
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

// Writes that nobody waits for, many at a time, by way of whoever is asked.
class Flood {
 public:
  Flood(ScriptedCluster& cluster, std::optional<ReplicaCount> w) : cluster_(cluster), w_(w) {}

  void Write(size_t node) {
    const int i = begun_++;
    cluster_.AskLater(node, PutCall{.key = KeyOf(i), .value = "v" + std::to_string(i), .w = w_},
                      [this, i](const CallResult& result) {
                        ++ended_;
                        if (result.status.ok()) acked_.push_back(i);
                      });
  }
  bool ended() const { return ended_ == begun_; }
  // Each write that was acknowledged is read by a quorum.
  void ExpectAllReadable(const std::vector<size_t>& by) {
    for (size_t at = 0; at < acked_.size(); ++at) {
      const std::string i = std::to_string(acked_[at]);
      EXPECT_EQ(cluster_.Values(by[at % by.size()], "key" + i, {}), std::vector<std::string>{"v" + i});
    }
  }
  const std::vector<int>& acked() const { return acked_; }

 private:
  ScriptedCluster& cluster_;
  const std::optional<ReplicaCount> w_;
  int begun_ = 0;
  int ended_ = 0;
  std::vector<int> acked_;
};

TEST(CasesE, Case50_WritesWhileANodeJoinsReachTheOldAndTheNewOwner) {
  for (const std::optional<ReplicaCount> w : {std::optional(kOne), std::optional<ReplicaCount>()}) {
    Moving m(4, 3, 500);
    Flood flood(m.cluster, w);
    m.cluster.BeginMove(m.cluster.WithMembers({0, 1, 2, 3}));
    for (size_t i = 0; m.cluster.moving(); ++i) {
      for (size_t node = 0; node < 4; ++node) flood.Write(node);
      m.cluster.Run(Millis(1));
      ASSERT_LT(i, 20'000u) << "the movement does not end";
    }
    ASSERT_TRUE(m.cluster.RunUntilMoved());
    ASSERT_TRUE(m.cluster.RunUntil([&] { return flood.ended(); }));
    EXPECT_GT(flood.acked().size(), 100u);
    m.cluster.Quiesce();  // what was acknowledged by one needs that to be with two
    flood.ExpectAllReadable({0, 1, 2, 3});
    m.ExpectAllReadable({3});
  }
}

// The leaver and the others clean up after each change what they are not given any more; then they are given
// it again, in the midst of that.
TEST(CasesE, Case52_WhatIsCleanedUpIsNotWhatIsNeededAgain) {
  Moving m(4, 3, 600);
  for (int round = 0; round < 4; ++round) {
    for (const bool join : {true, false}) {
      m.cluster.BeginMove(
          m.cluster.WithMembers(join ? std::vector<size_t>{0, 1, 2, 3} : std::vector<size_t>{0, 1, 2}));
      while (m.cluster.moving()) {
        const size_t node = static_cast<size_t>(m.cluster.now().value) % 4;
        m.cluster.Run(Millis(20));
        if (round % 2 == 0) continue;
        m.cluster.Kill(node);  // who starts looks for what it has too much of
        m.cluster.Run(Millis(5));
        m.cluster.Start(node);
        m.cluster.Run(Millis(200));
      }
      m.cluster.Run(Millis(3010));  // as long as they wait before they begin to drop
    }
  }
  ASSERT_TRUE(m.cluster.RunUntilMoved());
  m.ExpectAllReadable({0, 1, 2});
  m.cluster.Quiesce();
  m.ExpectInPlace();
}

// A newcomer that leaves again gives on what is older than the stable cut of the others, and has that cut by
// then: else they would take its rows for old ones that come back.
TEST(CasesE, Case52_WhatIsOlderThanTheStableCutComesBackFromWhoHadItForAWhile) {
  Moving m(5, 3, 400);
  m.cluster.Quiesce();
  m.cluster.PassWeeks(1);
  for (int round = 0; round < 2; ++round) {
    for (const std::vector<size_t>& members :
         {std::vector<size_t>{0, 1, 2, 3}, {0, 1, 2, 3, 4}, {0, 1, 2, 4}, {0, 1, 2}}) {
      m.cluster.BeginMove(m.cluster.WithMembers(members));
      ASSERT_TRUE(m.cluster.RunUntilMoved());
      for (const size_t node : members) {
        size_t given = 0;
        for (int i = 0; i < m.keys; ++i) {
          const std::vector<size_t> replicas = m.cluster.ReplicasOf(KeyOf(i));
          if (std::ranges::find(replicas, node) != replicas.end()) ++given;
        }
        EXPECT_GE(m.cluster.RowsOnDisk(node), given) << "node " << node << " of " << members.size();
      }
    }
  }
  m.ExpectAllReadable({0, 1, 2});
}

TEST(CasesE, Case53_ReadsOfOneAtANewcomerMissNothing) {
  Moving m(4, 3, 1500);
  m.cluster.BeginMove(m.cluster.WithMembers({0, 1, 2, 3}));
  int reads = 0;
  for (; m.cluster.moving() || reads < 2 * m.keys; ++reads) {
    const int i = reads % m.keys;
    ASSERT_EQ(m.cluster.Values(3, KeyOf(i), kOne), std::vector<std::string>{"v" + std::to_string(i)});
    ASSERT_LT(reads, 200'000) << "the movement does not end";
  }
  EXPECT_GT(m.cluster.core(3).movement().keys_received(), 0u);
}

// What was acknowledged is read at once, by way of another node, whatever layout that one reads by; and so is
// what was written long ago.
TEST(CasesE, Case54_WhatWasAcknowledgedIsReadWhileNodesComeAndGo) {
  Moving m(5, 3, 300);
  const std::vector<std::vector<size_t>> rounds = {{0, 1, 2, 3}, {0, 1, 2, 3, 4}, {0, 2, 3, 4},
                                                   {0, 3, 4},    {0, 1, 3},       {0, 1, 2}};
  for (const std::vector<size_t>& members : rounds) {
    m.cluster.BeginMove(m.cluster.WithMembers(members));
    const int before = m.keys;
    while (m.cluster.moving()) {
      const int old = static_cast<int>((static_cast<int64_t>(m.keys) * 7919) % (m.keys - 7));
      m.Write(m.keys++);
      const auto by = static_cast<size_t>(m.keys);
      ASSERT_EQ(m.cluster.Values(by % 5, KeyOf(m.keys - 1), {}),
                std::vector<std::string>{"v" + std::to_string(m.keys - 1)});
      ASSERT_EQ(m.cluster.Values((by + 2) % 5, KeyOf(old), {}),
                std::vector<std::string>{"v" + std::to_string(old)});
      ASSERT_LT(m.keys - before, 20'000) << "the movement does not end";
    }
    ASSERT_TRUE(m.cluster.RunUntilMoved());
  }
  m.ExpectAllReadable({0, 2});
  m.cluster.Quiesce();
  m.ExpectInPlace();
}

TEST(CasesE, Case55_AHundredKeysAreAllThereWhenAThirdNodeJoins) {
  Moving m(3, 2, 100);
  m.cluster.BeginMove(m.cluster.WithMembers({0, 1, 2}));
  ASSERT_TRUE(m.cluster.RunUntilMoved());
  m.ExpectAllReadable({0, 1, 2});
  m.cluster.Quiesce();
  for (size_t node = 0; node < 3; ++node) EXPECT_EQ(m.cluster.RowsOnDisk(node), 100u) << node;
}

TEST(CasesE, Case56_NothingThatWasAcknowledgedIsLostInHeavyMovement) {
  Moving m(5, 3, 500);
  Flood flood(m.cluster, {});
  for (int round = 0; round < 3; ++round) {
    for (const std::vector<size_t>& members :
         {std::vector<size_t>{0, 1, 2, 3, 4}, std::vector<size_t>{0, 1, 2}}) {
      m.cluster.BeginMove(m.cluster.WithMembers(members));
      for (size_t i = 0; m.cluster.moving(); ++i) {
        for (size_t node = 0; node < 5; ++node) flood.Write(node);
        m.cluster.Run(Millis(1));
        ASSERT_LT(i, 20'000u) << "the movement does not end";
      }
    }
  }
  ASSERT_TRUE(m.cluster.RunUntilMoved());
  ASSERT_TRUE(m.cluster.RunUntil([&] { return flood.ended(); }));
  EXPECT_GT(flood.acked().size(), 1000u);
  flood.ExpectAllReadable({0, 1, 2});
  m.ExpectAllReadable({0});
  m.cluster.Quiesce();
}

TEST(CasesE, Case61_ReadsByWayOfALeavingNodeMissNothingUntilItStops) {
  Moving m(4, 4, 1000);
  m.cluster.BeginMove(m.cluster.WithMembers({0, 1, 2}));
  int reads = 0;
  const auto read = [&] {
    const int i = reads++ % m.keys;
    ASSERT_EQ(m.cluster.Values(3, KeyOf(i), kOne), std::vector<std::string>{"v" + std::to_string(i)});
  };
  while (m.cluster.moving() || m.cluster.RowsOnDisk(3) > 0) {
    read();
    ASSERT_LT(reads, 200'000) << "it does not end";
  }
  for (int i = 0; i < m.keys; ++i) read();  // it has nothing any more
  m.cluster.Kill(3);
  m.ExpectAllReadable({0, 1, 2});
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
