// Cases of section A in which somebody holds an old value for very long: each test is named by its case in
// README.md.
#include "storage/format/row_key.h"
#include "tests/cases/scripted_cluster.h"

namespace gyre::cases {
namespace {

using Values = std::vector<std::string>;
using Blockers = std::vector<StableCut::Blocker>;

// A key on four nodes: three replicas, and who stands in for them.
struct Placed {
  explicit Placed(const ScriptedCluster& cluster) {
    const std::vector<size_t> replicas = cluster.ReplicasOf("k");
    a = replicas[0];
    b = replicas[1];
    c = replicas[2];
    fallback = 6 - a - b - c;
  }
  size_t a, b, c, fallback;
};

void ExpectGoneForGood(ScriptedCluster& cluster) {
  ASSERT_TRUE(cluster.RunUntilCollected());
  cluster.Quiesce();
  for (size_t node = 0; node < cluster.size(); ++node) {
    EXPECT_EQ(cluster.RowsOnDisk(node), 0u) << node;
    EXPECT_EQ(cluster.RowsOnDisk(node, Table::kHints), 0u) << node;
    EXPECT_EQ(cluster.Values(node, "k"), Values{}) << node;
    EXPECT_EQ(cluster.Values(node, "k", kOne), Values{}) << node;
  }
}

// By then a cut has risen that all had confirmed before anything was written, if all are there.
constexpr Micros kSettled = Seconds(20);

// Replica C is away while the key is put, so that the fallback holds a hint for it. Returns the fallback.
NodeId HintAnOldValue(ScriptedCluster& cluster, const Placed& at) {
  cluster.Kill(at.c);
  cluster.Run(Millis(100));
  cluster.Put(at.a, {.key = "k", .value = "old"});
  cluster.Run(Seconds(3));
  return cluster.node(at.fallback).id();
}

// A fallback holds an old value for a replica, and is away for weeks in which the key is deleted. Until it
// is back the stable cut stands still, and until its hint is gone below the value; it says because of whom.
TEST(CasesA, Case1_AHolderOfAnOldHintThatWasAwayForWeeksBringsNothingBack) {
  ScriptedCluster cluster({.nodes = 4});
  const Placed at(cluster);
  const NodeId holder = HintAnOldValue(cluster, at);
  ASSERT_EQ(cluster.core(at.fallback).replica().hints().at(cluster.node(at.c).id()).data, 1u);
  cluster.Kill(at.fallback);
  cluster.Start(at.c);
  ASSERT_TRUE(cluster.RunUntil([&] { return !cluster.OnDisk(at.c, "k").empty(); }));
  const uint64_t old = cluster.OnDisk(at.c, "k").versions.at(0).dot.counter;
  cluster.Delete(at.a, {.key = "k", .w = kAll});
  cluster.Run(kSettled);
  const uint64_t cut = cluster.CutOfAll(at.a);
  const auto expect_held_back = [&](const char* why) {
    for (const size_t replica : {at.a, at.b, at.c}) {
      EXPECT_LT(cluster.CutOfAll(replica), old);
      EXPECT_TRUE(cluster.OnDisk(replica, "k").tombstone());
      EXPECT_EQ(cluster.core(replica).stable_cut().blockers(), (Blockers{{holder, why}}));
    }
  };
  for (int week = 0; week < 4; ++week) {
    cluster.PassWeeks(1);
    expect_held_back("it is away");
    for (const size_t replica : {at.a, at.b, at.c}) EXPECT_EQ(cluster.CutOfAll(replica), cut);
  }
  cluster.SetFilter([&](size_t from, size_t, const Message& message) {
    return from != at.fallback || KindOf(message.op) != OpKind::kHandoff;
  });
  cluster.Start(at.fallback);
  cluster.Run(Seconds(600));
  expect_held_back("it has operations under way, or hints that hold data");
  for (size_t node = 0; node < 4; ++node) EXPECT_EQ(cluster.Values(node, "k"), Values{});
  cluster.SetFilter({});
  ExpectGoneForGood(cluster);
  EXPECT_EQ(cluster.deliveries().contains(cluster.RowKeyOf("k")), true);
}

// The same holder, and its hint cannot be read any more: it may be the only one that knows what it was.
TEST(CasesA, Case1_AHintThatCannotBeReadHoldsTheStableCutBack) {
  ScriptedCluster cluster({.nodes = 4});
  const Placed at(cluster);
  const NodeId holder = HintAnOldValue(cluster, at);
  cluster.Kill(at.fallback);
  cluster.node(at.fallback)
      .engine()
      .Corrupt(Table::kHints, MakeHintKey(cluster.node(at.c).id().value, cluster.RowKeyOf("k")));
  cluster.Start(at.c);
  cluster.Start(at.fallback);
  const uint64_t old = cluster.OnDisk(at.a, "k").versions.at(0).dot.counter;
  cluster.Delete(at.a, {.key = "k"});
  cluster.Run(kSettled);
  const uint64_t cut = cluster.CutOfAll(at.a);
  EXPECT_LT(cut, old);
  cluster.Run(Seconds(600));
  EXPECT_EQ(cluster.CutOfAll(at.a), cut);
  const Blockers held_back = {{holder, "it has operations under way, or hints that hold data"}};
  EXPECT_EQ(cluster.core(at.a).stable_cut().blockers(), held_back);
  EXPECT_TRUE(cluster.OnDisk(at.a, "k").tombstone());
}

// A coordinator has read an old value that one replica lacks, and stands still for weeks before it repairs
// that one. It is a node that holds no replica, or the stale replica itself.
TEST(CasesA, Case1_ACoordinatorThatWasPausedInMidRepairBringsNothingBack) {
  for (const bool is_replica : {false, true}) {
    ScriptedCluster cluster({.nodes = 4});
    const Placed at(cluster);
    const size_t coordinator = is_replica ? at.c : at.fallback;
    cluster.SetFilter([&](size_t, size_t to, const Message& message) {
      return !std::holds_alternative<peer::CompareSums>(message.body) &&
             KindOf(message.op) != OpKind::kHandoff &&
             (to != at.c || !std::holds_alternative<peer::StoreRow>(message.body));
    });
    cluster.Put(at.a, {.key = "k", .value = "old"});
    cluster.Run(Seconds(3));
    const uint64_t cut = cluster.CutOfAll(at.a);
    cluster.SetDelay([&](size_t from, size_t, const Message& message) {
      return from == at.b && std::holds_alternative<peer::FetchReply>(message.body) ? Millis(50)
                                                                                    : Micros{300};
    });
    cluster.AskLater(coordinator, GetCall{.key = "k", .r = kAll}, [](const CallResult&) {});
    cluster.Run(Millis(10));  // the value was read from one replica, and nothing from another
    const Micros until = cluster.now() + Seconds(4 * 7 * 60 + 60);
    cluster.node(coordinator).PauseUntil(until);
    cluster.Run(Millis(100));
    cluster.Delete(at.a, {.key = "k"});
    int repairs = 0;
    cluster.SetFilter([&](size_t from, size_t to, const Message& message) {
      const auto* store = std::get_if<peer::StoreRow>(&message.body);
      if (store != nullptr && store->repair && message.op == 0 && from == coordinator && to != coordinator) {
        repairs += DecodeRecord(*store->record)->tombstone() ? 0 : 1;
      }
      return true;
    });
    for (int week = 0; week < 4; ++week) {
      cluster.PassWeeks(1);
      EXPECT_EQ(cluster.CutOfAll(at.a), cut);
      EXPECT_TRUE(cluster.OnDisk(at.a, "k").tombstone());
      EXPECT_TRUE(cluster.OnDisk(at.b, "k").tombstone());
      const Blockers blockers = cluster.core(at.a).stable_cut().blockers();
      ASSERT_FALSE(blockers.empty());
      EXPECT_EQ(blockers[0].why, "its clock is behind");
      for (const StableCut::Blocker& blocker : blockers)
        EXPECT_EQ(blocker.node, cluster.node(coordinator).id());
    }
    ASSERT_TRUE(cluster.node(coordinator).paused());
    cluster.Run(until - cluster.now() + Seconds(1));
    if (!is_replica) {
      EXPECT_GE(repairs, 1) << "it goes on where it stopped";
    }
    for (size_t node = 0; node < 4; ++node) EXPECT_EQ(cluster.Values(node, "k"), Values{});
    ExpectGoneForGood(cluster);
  }
}

}  // namespace
}  // namespace gyre::cases
