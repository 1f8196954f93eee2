// Cases of section D, read repair and anti-entropy: each test is named by its case in README.md.
#include <algorithm>

#include "storage/format/row_key.h"
#include "tests/cases/scripted_cluster.h"

namespace gyre::cases {
namespace {

using Values = std::vector<std::string>;

// Of a node that is no member, so that no member takes it for its own.
constexpr uint64_t kStranger = 77;
constexpr uint64_t kYear2023Ms = 1'700'000'000'000;

Dot DotOf(uint64_t number, uint64_t node = kStranger) {
  return {{node, 1}, CounterOfMillis(kYear2023Ms) + number};
}

Record RecordOf(const std::string& value, uint64_t number, uint64_t node = kStranger) {
  Record record;
  ApplyPut(record, {.dot = DotOf(number, node), .value = value}, nullptr);
  return record;
}

// So young that no stable cut passes it while it is watched.
Record TombstoneOf(uint64_t number) {
  constexpr uint64_t kYear2030Ms = 1'900'000'000'000;
  Record record;
  ApplyDelete(record, DotOf(CounterOfMillis(kYear2030Ms) + number), {});
  return record;
}

// What many faults leave: values, siblings, tombstones and expired values, on some replicas and not on
// others.
void Diverge(ScriptedCluster& cluster) {
  for (int i = 0; i < 100; ++i) {
    const std::string key = "k" + std::to_string(i);
    const auto node = static_cast<size_t>(i) % 3;
    if (i % 20 == 0) {
      cluster.Mend();
      cluster.Part({static_cast<size_t>(i / 20) % 3});
      cluster.Run(Millis(100));
    }
    const PutCall put = {.key = key, .value = "v", .w = kOne};
    cluster.Put(node, put);
    cluster.Put((node + 1) % 3, put);
    if (i % 4 == 0) {
      const std::string context = cluster.Get(node, {.key = key, .r = kOne}).context;
      cluster.Delete(node, {.key = key, .w = kOne, .context = context});
    }
    if (i % 5 == 0)
      cluster.Put(node, {.key = "t" + std::to_string(i), .value = "v", .w = kOne, .ttl_ms = 2000});
  }
  cluster.Mend();
  cluster.Run(Millis(100));
}

// Many rows at once, past the lane.
void Load(ScriptedCluster& cluster, size_t node, int rows, const std::function<std::string(int)>& row_key_of,
          const std::function<Record(int)>& record_of) {
  std::vector<RowWrite> writes;
  for (int i = 0; i < rows; ++i) {
    writes.push_back(
        {row_key_of(i), nullptr, std::make_shared<const std::string>(EncodeRecord(record_of(i)))});
    if (writes.size() < 1000 && i + 1 < rows) continue;
    ASSERT_TRUE(cluster.node(node).store().Commit(writes, {}, Durability::kDisk).ok());
    writes.clear();
  }
}

TEST(CasesD, Case35_RoundsAfterQuiescenceRepairNothing) {
  ScriptedCluster cluster;
  cluster.SetFilter(
      [](size_t, size_t, const Message& message) { return KindOf(message.op) != OpKind::kHandoff; });
  Diverge(cluster);
  cluster.Run(Seconds(5));
  cluster.SetFilter({});
  cluster.Quiesce();
  EXPECT_GT(cluster.repairs(), 0u) << "hints did it all";
  const uint64_t repairs = cluster.repairs();
  const uint64_t rounds = cluster.core(0).exchange().counters().rounds;
  cluster.Run(Seconds(60));
  EXPECT_GE(cluster.core(0).exchange().counters().rounds, rounds + 3);
  EXPECT_EQ(cluster.repairs(), repairs);
}

// The same siblings reach the replicas in different orders.
TEST(CasesD, Case36_EqualSiblingsHaveEqualBytesWhateverTheirOrder) {
  ScriptedCluster cluster;
  const std::string row_key = cluster.RowKeyOf("k");
  std::vector<Record> siblings;
  for (uint64_t node = 70; node < 74; ++node)
    siblings.push_back(RecordOf("v" + std::to_string(node), 100 - node, node));
  for (size_t node = 0; node < 3; ++node) {
    std::ranges::rotate(siblings, siblings.begin() + static_cast<ptrdiff_t>(node));
    for (const Record& sibling : siblings) cluster.Inject(node, row_key, sibling);
  }
  std::vector<RowHash> roots;
  for (size_t node = 0; node < 3; ++node) {
    EXPECT_EQ(cluster.OnDisk(node, "k").versions.size(), 4u);
    EXPECT_EQ(*cluster.node(node).Durable(row_key), *cluster.node(0).Durable(row_key));
    roots.push_back(*cluster.node(node).store().SumOfRange(1, 0, 0));
  }
  EXPECT_EQ(roots[1], roots[0]);
  EXPECT_EQ(roots[2], roots[0]);
  cluster.Quiesce();
  EXPECT_EQ(cluster.repairs(), 0u);
}

// One replica is restarted, so that it reads from its disk and counts its sums anew, and one is an hour
// ahead, so that much is expired for it: whatever a replica keeps beside the data, equal data is equal.
TEST(CasesD, Case39_ReadsOfEqualReplicasRepairNothing) {
  ScriptedCluster cluster;
  Diverge(cluster);
  for (int i = 0; i < 50; ++i)
    cluster.Put(0, {.key = "e" + std::to_string(i), .value = "v", .w = kAll, .ttl_ms = 1800 * 1000});
  cluster.Quiesce();
  cluster.Kill(1);
  cluster.node(1).engine().LoseLog();
  cluster.Run(Seconds(1));
  cluster.Start(1);
  cluster.node(2).JumpWallClock(3600 * 1000);
  cluster.Quiesce();
  const uint64_t repairs = cluster.repairs();
  for (int i = 0; i < 1000; ++i) {
    cluster.Get(static_cast<size_t>(i) % 3, {.key = "k" + std::to_string(i % 100), .r = kAll});
    cluster.Get(static_cast<size_t>(i) % 3, {.key = "e" + std::to_string(i % 50), .r = kAll});
  }
  cluster.Run(Seconds(30));
  EXPECT_EQ(cluster.repairs(), repairs);
}

TEST(CasesD, Case41_AReadSucceedsThoughTheRepairThatItOwesCannotBeWritten) {
  ScriptedCluster cluster;
  cluster.Part({2});
  cluster.Run(Millis(100));
  for (int i = 0; i < 50; ++i) cluster.Put(0, {.key = "k" + std::to_string(i), .value = "new"});
  cluster.node(2).SetDiskFull(true);
  cluster.Mend();
  cluster.Run(Millis(100));
  for (const ReplicaCount r : {ReplicaCount{}, kAll}) {
    for (int i = 0; i < 50; ++i)
      EXPECT_EQ(cluster.Values(static_cast<size_t>(i) % 3, "k" + std::to_string(i), r), Values{"new"});
  }
  cluster.Run(Seconds(30));
  EXPECT_EQ(cluster.RowsOnDisk(2), 0u);
  cluster.node(2).SetDiskFull(false);
  cluster.Quiesce();
  EXPECT_EQ(cluster.RowsOnDisk(2), 50u) << "in the background, without a read";
}

// How many bytes of records are on their way to each node, from being sent to being durable.
class OnTheirWay {
 public:
  explicit OnTheirWay(ScriptedCluster& cluster) {
    cluster.SetFilter([this](size_t, size_t to, const Message& message) {
      if (const auto* rows = std::get_if<peer::CompareRows>(&message.body))
        most_rows_ = std::max(most_rows_, rows->rows.size());
      if (const auto* reply = std::get_if<peer::CompareRowsReply>(&message.body))
        most_rows_ = std::max(most_rows_, reply->wanted.size());
      if (const auto* store = std::get_if<peer::StoreRow>(&message.body)) {
        const size_t bytes = store->row_key.size() + store->record->size();
        Node& node = nodes_[to];
        if (node.rows.emplace(store->row_key, bytes).second) node.bytes += bytes;
        most_bytes_ = std::max(most_bytes_, node.bytes);
      }
      return true;
    });
    cluster.OnDurable([this](size_t to, const std::string& row_key) {
      Node& node = nodes_[to];
      const auto row = node.rows.find(row_key);
      if (row == node.rows.end()) return;
      node.bytes -= row->second;
      node.rows.erase(row);
    });
  }
  size_t most_bytes() const { return most_bytes_; }
  size_t most_rows_told() const { return most_rows_; }  // in one message, by hash

 private:
  struct Node {
    std::map<std::string, size_t> rows;
    size_t bytes = 0;
  };
  std::map<size_t, Node> nodes_;
  size_t most_bytes_ = 0;
  size_t most_rows_ = 0;
};

// In few leaves of the tree, as where there are very many rows: so the pages of a comparison are full.
std::string CrowdedRowKey(int i) {
  const uint64_t leaf = static_cast<uint64_t>(i) / 2000;
  return MakeRowKey(1, leaf << 48 | static_cast<uint64_t>(i), "k");
}

// A long run of tombstones that two replicas lack, both with slow disks: what is on its way is bounded.
TEST(CasesD, Case42_ALongRunOfTombstonesIsRepairedInBoundedMemory) {
  ScriptedCluster cluster;
  constexpr int kRows = 30'000;
  Load(cluster, 0, kRows, CrowdedRowKey, [](int i) { return TombstoneOf(static_cast<uint64_t>(i)); });
  for (size_t node = 1; node < 3; ++node) cluster.node(node).SetCommitMax(Seconds(1));
  OnTheirWay on_their_way(cluster);
  cluster.Quiesce();
  for (size_t node = 1; node < 3; ++node) EXPECT_EQ(cluster.RowsOnDisk(node), static_cast<size_t>(kRows));
  EXPECT_LE(on_their_way.most_rows_told(), ScanCall::kRowsMax);
  EXPECT_LE(on_their_way.most_bytes(), size_t{8} << 20);
}

// The same with large values, in both directions: the one who compares lacks some, too.
TEST(CasesD, Case42_LargeValuesAreRepairedInBoundedMemory) {
  ScriptedCluster cluster;
  constexpr int kRows = 10'000;
  const std::string value(4000, 'v');
  const auto record_of = [&](int i) { return RecordOf(value, static_cast<uint64_t>(i)); };
  for (const size_t node : {0, 2}) {
    const int first = node == 0 ? 0 : kRows;
    Load(
        cluster, node, kRows, [&](int i) { return CrowdedRowKey(first + i); }, record_of);
  }
  for (size_t node = 0; node < 3; ++node) cluster.node(node).SetCommitMax(Seconds(1));
  OnTheirWay on_their_way(cluster);
  cluster.Quiesce();
  for (size_t node = 0; node < 3; ++node) EXPECT_EQ(cluster.RowsOnDisk(node), 2u * kRows);
  EXPECT_LE(on_their_way.most_bytes(), size_t{8} << 20);
}

// Keys of 16 bytes for which XXH3 computes the same: half of each cancels half of its secret.
const std::string kTwinA("\xb9\x39\x42\xea\x7b\x73\x82\x67\x59\x3d\xfa\x65\x52\xd8\x33\xdc", 16);
const std::string kTwinB("\xca\x5c\x26\x83\x17\x1f\xed\x04\x3a\x52\x96\x09\x3b\xbc\x56\xaf", 16);

TEST(CasesD, Case43_KeysOfOneTokenAreNotMixedUp) {
  ASSERT_EQ(TokenOf(kTwinA), TokenOf(kTwinB));
  ScriptedCluster cluster;
  // One replica is stale for one of them only, and then for the other.
  cluster.Put(0, {.key = kTwinA, .value = "a1", .w = kAll});
  cluster.Put(0, {.key = kTwinB, .value = "b1", .w = kAll});
  cluster.Part({2});
  cluster.Run(Millis(100));
  cluster.Put(0, {.key = kTwinA, .value = "a2"});
  cluster.SetFilter(
      [](size_t, size_t, const Message& message) { return KindOf(message.op) != OpKind::kHandoff; });
  cluster.Mend();
  cluster.Run(Millis(100));
  for (size_t node = 0; node < 3; ++node) {
    EXPECT_EQ(cluster.Values(node, kTwinA), Values{"a2"});
    EXPECT_EQ(cluster.Values(node, kTwinB), Values{"b1"});
  }
  cluster.Run(Seconds(1));
  EXPECT_EQ(cluster.OnDisk(2, kTwinA), cluster.OnDisk(0, kTwinA)) << "repaired by the read";
  // Hints and anti-entropy.
  cluster.Part({1});
  cluster.Run(Millis(100));
  cluster.Put(0, {.key = kTwinB, .value = "b2"});
  cluster.SetFilter({});
  cluster.Mend();
  cluster.Quiesce();
  for (size_t node = 0; node < 3; ++node) {
    EXPECT_EQ(cluster.Values(node, kTwinA, kOne), Values{"a2"});
    EXPECT_EQ(cluster.Values(node, kTwinB, kOne), Values{"b2"});
    EXPECT_EQ(cluster.ScanAll(node).size(), 2u);
  }
  cluster.Delete(1, {.key = kTwinA});
  cluster.Quiesce();
  EXPECT_EQ(cluster.Values(2, kTwinA), Values{});
  EXPECT_EQ(cluster.Values(2, kTwinB), Values{"b2"});
  EXPECT_EQ(cluster.ScanAll(0).size(), 1u);
}

// Decommission is not there yet. What moves data today: hints, of which one names a row that cannot be read…
TEST(CasesD, Case44_ARowThatCannotBeReadHoldsUpNoOtherHint) {
  ScriptedCluster cluster;
  cluster.Kill(2);
  cluster.Run(Millis(100));
  for (int i = 0; i < 300; ++i) cluster.Put(0, {.key = "k" + std::to_string(i), .value = "v"});
  cluster.Run(Seconds(3));
  cluster.Kill(0);
  cluster.node(0).engine().Corrupt(Table::kRows, cluster.RowKeyOf("k0"));
  cluster.Run(Seconds(1));
  cluster.Start(0);
  cluster.SetFilter([](size_t, size_t, const Message& message) {  // hints alone
    return !std::holds_alternative<peer::CompareSums>(message.body);
  });
  cluster.Start(2);
  cluster.Run(Seconds(30));
  EXPECT_GE(cluster.RowsOnDisk(2), 299u);
}

// …hints of which one cannot be read itself…
TEST(CasesD, Case44_AHintThatCannotBeReadHoldsUpNoOther) {
  ScriptedCluster cluster;
  cluster.Kill(2);
  cluster.Run(Millis(100));
  for (int i = 0; i < 300; ++i) cluster.Put(0, {.key = "k" + std::to_string(i), .value = "v"});
  cluster.Run(Seconds(3));
  cluster.node(0).engine().Corrupt(Table::kHints, MakeHintKey(3, cluster.RowKeyOf("k0")));
  cluster.SetFilter([](size_t, size_t, const Message& message) {
    return !std::holds_alternative<peer::CompareSums>(message.body);
  });
  cluster.Start(2);
  cluster.Run(Seconds(30));
  EXPECT_GE(cluster.RowsOnDisk(2), 299u);
}

// …and comparisons, in which each side holds one row that cannot be read.
TEST(CasesD, Case44_ARowThatCannotBeReadHoldsUpNoOtherRepair) {
  for (const bool restarted : {false, true}) {
    ScriptedCluster cluster;
    const auto row_key_of = [&](int i) { return cluster.RowKeyOf("bulk" + std::to_string(i)); };
    Load(cluster, 0, 300, row_key_of, [](int i) { return RecordOf("v", static_cast<uint64_t>(i)); });
    Load(cluster, 1, 1, row_key_of, [](int) { return RecordOf("old", 0); });
    for (size_t node = 0; node < 2; ++node) {
      if (restarted) cluster.Kill(node);
      cluster.node(node).engine().Corrupt(Table::kRows, row_key_of(0));
      if (restarted) cluster.node(node).engine().LoseLog();
      if (restarted) cluster.Start(node);
    }
    cluster.Run(Seconds(60));
    for (int i = 1; i < 300; ++i) {
      ASSERT_NE(cluster.node(1).Durable(row_key_of(i)), nullptr)
          << i << (restarted ? " after a restart" : "");
      ASSERT_NE(cluster.node(2).Durable(row_key_of(i)), nullptr)
          << i << (restarted ? " after a restart" : "");
    }
    EXPECT_GT(cluster.core(0).exchange().unequal(), 0u) << "what could not be compared is not called equal";
  }
}

// …and the leaving of a node: what it cannot read the new owners get from the other replicas.
TEST(CasesD, Case44_ARowThatCannotBeReadHoldsUpNoLeaving) {
  ScriptedCluster cluster({.nodes = 4});
  constexpr int kKeys = 400;
  const auto key_of = [](int i) { return "k" + std::to_string(i); };
  for (int i = 0; i < kKeys; ++i) cluster.Put(0, {.key = key_of(i), .value = "v" + std::to_string(i)});
  cluster.Quiesce();
  cluster.Kill(3);
  int unreadable = 0;
  for (int i = 0; i < kKeys && unreadable < 3; ++i) {
    if (cluster.node(3).Durable(cluster.RowKeyOf(key_of(i))) == nullptr) continue;
    cluster.node(3).engine().Corrupt(Table::kRows, cluster.RowKeyOf(key_of(i)));
    ++unreadable;
  }
  cluster.Start(3);
  cluster.Run(Seconds(1));
  cluster.BeginMove(cluster.WithMembers({0, 1, 2}));
  ASSERT_TRUE(cluster.RunUntil([&] { return !cluster.moving(); }));
  for (size_t node = 0; node < 3; ++node) EXPECT_EQ(cluster.RowsOnDisk(node), size_t{kKeys});
  EXPECT_TRUE(cluster.RunUntilMoved()) << "it has given away all that it can read, and may be stopped";
  cluster.Kill(3);
  for (int i = 0; i < kKeys; ++i)
    EXPECT_EQ(cluster.Values(0, key_of(i)), std::vector<std::string>{"v" + std::to_string(i)});
}

}  // namespace
}  // namespace gyre::cases
