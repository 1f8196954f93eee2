// The traces that broke weaker rules of the stable cut in the models of the design, on the real code, by
// their numbers there.
#include "storage/format/meta_codec.h"
#include "tests/cases/scripted_cluster.h"
#include "tests/server/core/comparing_node.h"

namespace gyre::cases {
namespace {

using Values = std::vector<std::string>;

// Traces in which a moment within one node matters are played on one that is driven by hand.
struct CutTraces : ComparingNodeTest {};

// How most of them begin: a value is everywhere, and nothing of it on its way.
void PutEverywhere(ScriptedCluster& cluster) {
  cluster.Put(0, {.key = "k", .value = "old", .w = kAll});
  cluster.Run(Seconds(3));
}

void RunUntilAllHold(ScriptedCluster& cluster, uint64_t cut) {
  ASSERT_TRUE(cluster.RunUntil([&] {
    for (size_t node = 0; node < cluster.size(); ++node)
      if (cluster.CutOfAll(node) < cut) return false;
    return true;
  }));
}

void ExpectGone(ScriptedCluster& cluster) {
  for (size_t node = 0; node < cluster.size(); ++node) {
    EXPECT_EQ(cluster.RowsOnDisk(node), 0u) << node;
    EXPECT_EQ(cluster.Values(node, "k", kOne), Values{}) << node;
    EXPECT_EQ(cluster.Values(node, "k"), Values{}) << node;
  }
}

void DeleteAndCollect(ScriptedCluster& cluster) {
  cluster.Delete(0, {.key = "k", .w = kAll});
  ASSERT_TRUE(cluster.RunUntilCollected());
  ExpectGone(cluster);
}

// Neither values nor comparisons reach the last of three replicas.
ScriptedCluster::Filter NothingReaches(size_t node) {
  return [node](size_t, size_t to, const Message& message) {
    return to != node || (!std::holds_alternative<peer::StoreRow>(message.body) &&
                          !std::holds_alternative<peer::CompareSums>(message.body));
  };
}

// All that a tombstone covers may be below the cut. It has a dot of its own, or it would go at once while
// one replica still holds the value.
TEST_F(CutTraces, Trace1_ATombstoneIsAsYoungAsItsDelete) {
  ScriptedCluster cluster;
  PutEverywhere(cluster);
  const uint64_t put = cluster.OnDisk(0, "k").seen.Max();
  RunUntilAllHold(cluster, put);
  cluster.SetFilter(NothingReaches(2));
  cluster.Delete(0, {.key = "k", .context = cluster.Get(1, {.key = "k"}).context});
  cluster.Run(Seconds(60));
  for (const size_t node : {0, 1}) {
    ASSERT_TRUE(cluster.OnDisk(node, "k").tombstone());
    EXPECT_GT(cluster.OnDisk(node, "k").seen.Max(), put);
  }
  EXPECT_EQ(cluster.OnDisk(2, "k").versions.size(), 1u);
  cluster.SetFilter({});
  ASSERT_TRUE(cluster.RunUntilCollected());
  ExpectGone(cluster);
}

// A delete reached two of three replicas, and nobody is left who knows that. Rounds of before found all
// equal; that all have confirmed a cut above the delete does not make them count.
TEST_F(CutTraces, Trace3_AnExchangeBeforeTheLastConfirmationProvesNothing) {
  ScriptedCluster cluster;
  PutEverywhere(cluster);
  cluster.Quiesce();
  cluster.SetFilter(NothingReaches(2));
  cluster.Delete(0, {.key = "k"});
  cluster.Kill(0);  // before it wrote down what the third is owed
  cluster.Run(Millis(100));
  cluster.Start(0);
  cluster.Run(Seconds(60));
  ASSERT_EQ(cluster.HintsHeld(), 0u);
  const uint64_t deleted = cluster.OnDisk(0, "k").seen.Max();
  for (size_t node = 0; node < 3; ++node) {
    EXPECT_GT(cluster.core(node).replica().cuts().promised, deleted);
    EXPECT_LT(cluster.core(node).replica().cuts().held, deleted);
  }
  EXPECT_TRUE(cluster.OnDisk(0, "k").tombstone());
  EXPECT_TRUE(cluster.OnDisk(1, "k").tombstone());
  EXPECT_EQ(cluster.OnDisk(2, "k").versions.size(), 1u);
  cluster.SetFilter({});
  ASSERT_TRUE(cluster.RunUntilCollected());
  ExpectGone(cluster);
}

// The same of a round that was under way then.
TEST_F(CutTraces, Trace3_ARoundUnderWayAtTheLastConfirmationProvesNothing) {
  cuts = {.confirmed = kNow};
  Restart(std::nullopt);
  BothSay({.ready = kNow});
  TickAfter(Seconds(6));  // the first round is given up
  CompareAllEqual();
  TickAfter(Seconds(10));
  ASSERT_FALSE(out.sum_reads.empty()) << "a round is under way";
  BothSay({.ready = kNow, .confirmed = kNow});
  TickAfter(Millis(100));
  const uint64_t rounds = node->exchange().counters().rounds;
  CompareAllEqual();
  ASSERT_EQ(node->exchange().counters().rounds, rounds + 1);
  Live(Seconds(2));
  EXPECT_EQ(cut_said.exchanged, 0u);
  for (int round = 0; round < 2; ++round) {
    TickAfter(Seconds(10));
    CompareAllEqual();
  }
  Live(Seconds(2));
  EXPECT_EQ(cut_said.exchanged, kNow);
}

// A value is on its way to a replica for so long that meanwhile the key is deleted, and the tombstone
// collected everywhere. It carries the cut of the moment when it was read and not when it was sent.
void ALateRecordBringsNothingBack(const std::function<bool(const Message&)>& is_late, bool read_repair) {
  ScriptedCluster cluster;
  int late = 0;  // below 0: none is made so any more
  const auto late_to_2 = [&](size_t to, const Message& message) {
    return late >= 0 && to == 2 && std::holds_alternative<peer::StoreRow>(message.body) && is_late(message);
  };
  cluster.SetFilter([&](size_t, size_t to, const Message& message) {
    if (to != 2 || late < 0) return true;
    if (late_to_2(to, message)) return true;
    return !std::holds_alternative<peer::StoreRow>(message.body);
  });
  cluster.SetDelay([&](size_t, size_t to, const Message& message) {
    if (!late_to_2(to, message)) return Micros{300};
    ++late;
    return Seconds(600);
  });
  const Micros begun = cluster.now();
  cluster.Put(0, {.key = "k", .value = "old"});
  if (read_repair) {
    EXPECT_EQ(cluster.Values(1, "k"), Values{"old"});
  }
  ASSERT_TRUE(cluster.RunUntil([&] { return late > 0; }));
  late = -1;  // all others are in time again
  ASSERT_TRUE(cluster.RunUntil([&] { return !cluster.OnDisk(2, "k").empty(); }));
  DeleteAndCollect(cluster);
  const Micros arrival = begun + Seconds(600);
  ASSERT_LT(cluster.now(), arrival);
  cluster.Run(arrival + Seconds(60) - cluster.now());
  ExpectGone(cluster);
}

TEST_F(CutTraces, Trace4_ARecordCarriesTheCutUnderWhichItWasRead) {
  ALateRecordBringsNothingBack([](const Message& message) { return KindOf(message.op) == OpKind::kExchange; },
                               false);
  ALateRecordBringsNothingBack([](const Message& message) { return KindOf(message.op) == OpKind::kHandoff; },
                               false);
  ALateRecordBringsNothingBack(  // the put itself
      [](const Message& message) { return !std::get<peer::StoreRow>(message.body).repair; }, false);
}

TEST_F(CutTraces, Trace5_ALateRepairOfAReadBringsNothingBack) {
  ALateRecordBringsNothingBack([](const Message& message) { return message.op == 0; }, true);
}

// A read got an old value from one replica before, and nothing from another after the cut rose: it is
// awaited before a promise is given, and the higher cut decides the merge all the same.
TEST_F(CutTraces, Trace5_AReadUnderWayIsAwaitedAndTheHigherCutDecidesItsMerge) {
  BothSay({.ready = kNow});
  Call(GetCall{.key = "k", .r = kAll}, Seconds(30));
  std::map<NodeId, OpId> asked;
  for (const Outbox::Send& send : Sent()) {
    if (std::holds_alternative<peer::FetchRow>(send.message.body)) asked[send.to] = send.message.op;
  }
  ASSERT_EQ(asked.size(), 2u);
  Answer(kC, asked[kC], peer::FetchReply{.record = Encoded(gyre::RecordOf("old", kB, kNow - 5))});
  Live(Seconds(10));
  EXPECT_EQ(node->replica().cuts().promised, 0u);
  Sent();
  Answer(kB, asked[kB], peer::FetchReply{.cut = kNow});
  EXPECT_TRUE(std::get<GetResult>(Reply().result).values.empty());
  for (const Outbox::Send& send : Sent()) {
    const auto* store = std::get_if<peer::StoreRow>(&send.message.body);
    EXPECT_TRUE(store == nullptr || DecodeRecord(*store->record)->versions.empty());
  }
  Live(Seconds(2));
  EXPECT_EQ(node->replica().cuts().promised, kNow);
  EXPECT_TRUE(OnDisk("k").versions.empty());
}

// The cut rises between two answers to a read that began after this node's promise: what is repaired with
// carries the cut under which it was read, and not that of now.
TEST_F(CutTraces, Trace5_ARepairCarriesTheCutOfWhatWasRead) {
  cuts = {.confirmed = kNow};
  Restart(std::nullopt);
  TickAfter(Seconds(6));
  CompareAllEqual();
  BothSay({.ready = kNow, .confirmed = kNow});
  Live(Seconds(1));
  Sent();
  Call(GetCall{.key = "k", .r = kAll}, Seconds(60));
  std::map<NodeId, OpId> asked;
  for (const Outbox::Send& send : Sent()) {
    if (std::holds_alternative<peer::FetchRow>(send.message.body)) asked[send.to] = send.message.op;
  }
  ASSERT_EQ(asked.size(), 2u);
  Answer(kC, asked[kC], peer::FetchReply{.record = Encoded(gyre::RecordOf("old", kB, kNow - 5))});
  TickAfter(Seconds(10));
  CompareAllEqual();
  BothSay({.ready = kNow, .confirmed = kNow, .exchanged = kNow, .cut = kNow});
  Live(Seconds(3));
  ASSERT_EQ(node->replica().cuts().held, kNow);
  Sent();
  Answer(kB, asked[kB], peer::FetchReply{});
  int repairs = 0;
  for (const Outbox::Send& send : Sent()) {
    const auto* store = std::get_if<peer::StoreRow>(&send.message.body);
    if (store == nullptr || !store->repair) continue;
    ++repairs;
    EXPECT_EQ(store->cut, 0u);
  }
  EXPECT_EQ(repairs, 1);
  Commit();
  EXPECT_TRUE(OnDisk("k").empty()) << "this node holds the cut, and refuses its own repair";
}

// A hint with an old value reaches a fallback after it has promised to take none: it is refused, so that
// nobody reads it when the replica is away once more.
TEST_F(CutTraces, Trace6_AHintThatArrivesAfterThePromiseIsRefused) {
  ScriptedCluster cluster({.nodes = 4});
  const std::vector<size_t> replicas = cluster.ReplicasOf("k");
  const size_t fallback = 6 - replicas[0] - replicas[1] - replicas[2];
  const size_t away = replicas[2];
  cluster.Kill(away);
  cluster.Run(Millis(100));
  int late = 0;
  cluster.SetDelay([&](size_t, size_t to, const Message& message) {
    const auto* store = std::get_if<peer::StoreRow>(&message.body);
    if (late > 0 || to != fallback || store == nullptr || !store->hint_for) return Micros{300};
    ++late;
    return Seconds(600);
  });
  const Micros begun = cluster.now();
  cluster.Put(replicas[0], {.key = "k", .value = "old"});
  ASSERT_EQ(late, 1);
  cluster.Start(away);
  ASSERT_TRUE(cluster.RunUntil([&] { return !cluster.OnDisk(away, "k").empty(); }));
  cluster.Delete(replicas[0], {.key = "k", .w = kAll});
  ASSERT_TRUE(cluster.RunUntilCollected());
  const Micros arrival = begun + Seconds(600);
  ASSERT_LT(cluster.now(), arrival);
  cluster.Kill(away);
  cluster.Run(arrival + Seconds(60) - cluster.now());
  EXPECT_EQ(cluster.RowsOnDisk(fallback, Table::kHints), 0u);
  for (size_t node = 0; node < 4; ++node) {
    if (node != away) {
      EXPECT_EQ(cluster.Values(node, "k", ReplicaCount{}), Values{});
    }
  }
  cluster.Start(away);
  cluster.Quiesce();
  ExpectGone(cluster);
}

// The node's disk is as an old file left it: it has the row, and what it promised and held, but knows that
// it may lack what it confirmed later.
void StartOnOldFile(ScriptedCluster& cluster, size_t node, RecordBytes row) {
  {
    Store store(cluster.node(node).engine());
    const std::string row_key = cluster.RowKeyOf("k");
    const RowWrite write = {row_key, cluster.node(node).Durable(row_key), std::move(row)};
    ASSERT_TRUE(store.Commit({&write, 1}, {}, Durability::kDisk).ok());
  }
  const EngineWrite fills = {Table::kMeta, std::string(kMetaFilling), std::make_shared<const std::string>()};
  ASSERT_TRUE(cluster.node(node).engine().Apply({&fills, 1}, Durability::kDisk, "").ok());
  cluster.Start(node);
}

// A value that was deleted, and its tombstone collected, is back on one replica.
struct BackFromAFile {
  ScriptedCluster cluster;
  std::set<size_t> spread_to;

  BackFromAFile() {
    PutEverywhere(cluster);
    const RecordBytes old = cluster.node(1).Durable(cluster.RowKeyOf("k"));
    DeleteAndCollect(cluster);
    cluster.Kill(1);
    cluster.Run(Millis(100));
    cluster.OnDurable([this](size_t node, const std::string&) { spread_to.insert(node); });
    StartOnOldFile(cluster, 1, old);
  }
};

TEST_F(CutTraces, Trace7_AFillingReplicaHoldsNoCut) {
  BackFromAFile world;
  ScriptedCluster& cluster = world.cluster;
  ASSERT_TRUE(cluster.core(1).exchange().filling());
  EXPECT_EQ(cluster.core(1).replica().read_cut(""), 0u);
  cluster.Quiesce();
  ExpectGone(cluster);
  EXPECT_EQ(world.spread_to, (std::set<size_t>{1})) << "where it was dropped";
}

TEST_F(CutTraces, Trace8_AFillingReplicaAnswersNoReads) {
  BackFromAFile world;
  ScriptedCluster& cluster = world.cluster;
  cluster.SetFilter([](size_t, size_t, const Message& message) {
    return !std::holds_alternative<peer::CompareSums>(message.body);
  });
  cluster.Run(Seconds(60));
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(cluster.Values(static_cast<size_t>(i) % 3, "k", ReplicaCount{}), Values{});
    EXPECT_EQ(cluster.Ask(static_cast<size_t>(i) % 3, GetCall{.key = "k", .r = kAll}).status.code(),
              absl::StatusCode::kUnavailable);
  }
  ASSERT_TRUE(cluster.core(1).exchange().filling());
  EXPECT_EQ(world.spread_to, std::set<size_t>{});
  cluster.SetFilter({});
  cluster.Quiesce();
  ExpectGone(cluster);
}

// A live value below the cut, and then all its replicas may have forgotten something: none of them knows
// what the cut covers, so nothing is dropped, and the cut begins anew.
void FillAll(ScriptedCluster& cluster, const std::set<size_t>& with_row) {
  PutEverywhere(cluster);
  const uint64_t put = cluster.OnDisk(0, "k").seen.Max();
  const RecordBytes old = cluster.node(0).Durable(cluster.RowKeyOf("k"));
  RunUntilAllHold(cluster, put);
  for (size_t node = 0; node < 3; ++node) cluster.Kill(node);
  cluster.Run(Millis(100));
  for (size_t node = 0; node < 3; ++node) {
    StartOnOldFile(cluster, node, with_row.contains(node) ? old : nullptr);
    EXPECT_EQ(cluster.core(node).replica().read_cut(""), 0u);
    cluster.Run(Seconds(1));
  }
  ASSERT_TRUE(cluster.RunUntil([&] {
    for (size_t node = 0; node < 3; ++node)
      if (cluster.core(node).exchange().filling()) return false;
    return true;
  }));
  for (size_t node = 0; node < 3; ++node) EXPECT_LT(cluster.core(node).replica().cuts().held, put);
  cluster.Quiesce();
  for (size_t node = 0; node < 3; ++node) {
    EXPECT_EQ(cluster.Values(node, "k"), Values{"old"});
    EXPECT_EQ(cluster.OnDisk(node, "k").versions.size(), 1u);
  }
  RunUntilAllHold(cluster, put);
  DeleteAndCollect(cluster);
}

TEST_F(CutTraces, Trace9_WhereAllFillNothingIsDropped) {
  ScriptedCluster cluster;
  FillAll(cluster, {0, 1, 2});
}

TEST_F(CutTraces, AllFilling_TheyBecomeFullFromEachOther) {
  for (size_t node = 0; node < 3; ++node) {
    ScriptedCluster cluster;
    FillAll(cluster, {node});
  }
}

}  // namespace
}  // namespace gyre::cases
