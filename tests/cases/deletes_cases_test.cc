// Cases of section A, deletes, tombstones and expiry: each test is named by its case in README.md.
#include <set>

#include "tests/cases/scripted_cluster.h"
#include "tests/storage/rocks_world.h"

namespace gyre::cases {
namespace {

using Values = std::vector<std::string>;

constexpr uint64_t kStranger = 77;  // no member, so that no member takes a record for its own
constexpr uint64_t kYear2023Ms = 1'700'000'000'000;

Dot DotOf(uint64_t number, uint64_t node = kStranger) {
  return {{node, 1}, CounterOfMillis(kYear2023Ms) + number};
}

// What passes between nodes while `filter` is set: no hints and no anti-entropy, so that a replica stays
// stale.
bool NeitherHintsNorComparisons(size_t, size_t, const Message& message) {
  return KindOf(message.op) != OpKind::kHandoff && !std::holds_alternative<peer::CompareSums>(message.body);
}

void ExpectNothingOnDisk(ScriptedCluster& cluster) {
  for (size_t node = 0; node < cluster.size(); ++node) {
    EXPECT_EQ(cluster.RowsOnDisk(node), 0u) << node;
    EXPECT_EQ(cluster.RowsOnDisk(node, Table::kCollect), 0u) << node;
    EXPECT_EQ(cluster.node(node).store().collectible(), 0u) << node;
  }
}

// A replica misses a delete and stays away for weeks: nothing that it still holds comes back, and what says
// so goes when it has it, too.
TEST(CasesA, Case1_ADeleteOutlivesAReplicaThatMissedItAndWasAwayForLong) {
  for (const bool with_context : {true, false}) {
    ScriptedCluster cluster;
    cluster.Put(0, {.key = "k", .value = "v", .w = kAll});
    cluster.Kill(2);
    cluster.Run(Millis(100));
    DeleteCall call = {.key = "k"};
    if (with_context) call.context = cluster.Get(1, {.key = "k"}).context;
    cluster.Delete(1, call);
    const StableCut::Blocker away = {cluster.node(2).id(), "it is away"};
    for (int week = 0; week < 3; ++week) {
      cluster.PassWeeks(1);
      EXPECT_EQ(cluster.core(0).stable_cut().blockers(), std::vector{away});
      EXPECT_EQ(cluster.core(1).stable_cut().blockers(), std::vector{away});
      EXPECT_TRUE(cluster.OnDisk(0, "k").tombstone()) << "kept while a replica has not confirmed it";
      EXPECT_TRUE(cluster.OnDisk(1, "k").tombstone());
    }
    cluster.SetFilter(NeitherHintsNorComparisons);
    cluster.Start(2);
    cluster.Run(Millis(200));
    for (size_t node = 0; node < 3; ++node) EXPECT_EQ(cluster.Values(node, "k"), Values{});
    cluster.Run(Seconds(60));
    EXPECT_TRUE(cluster.OnDisk(0, "k").tombstone()) << "kept until it was compared";
    cluster.SetFilter({});
    cluster.Quiesce();
    ASSERT_TRUE(cluster.RunUntilCollected());
    for (size_t node = 0; node < 3; ++node) {
      EXPECT_EQ(cluster.Values(node, "k", kOne), Values{});
      EXPECT_EQ(cluster.Values(node, "k"), Values{});
      EXPECT_TRUE(cluster.ScanAll(node).empty());
    }
    ExpectNothingOnDisk(cluster);
  }
}

// The same, but the hints for it are lost with the disk of who held them.
TEST(CasesA, Case1_ADeleteOutlivesTheLossOfItsHints) {
  ScriptedCluster cluster;
  cluster.Put(0, {.key = "k", .value = "v", .w = kAll});
  cluster.Kill(2);
  cluster.Run(Millis(100));
  cluster.Delete(1, {.key = "k", .context = cluster.Get(1, {.key = "k"}).context});
  cluster.Run(Seconds(3));
  for (size_t node = 0; node < 2; ++node) {
    cluster.Kill(node);
    ASSERT_TRUE(cluster.node(node).engine().EraseRange(Table::kHints, {}).ok());
    cluster.Start(node);
  }
  cluster.Start(2);
  cluster.Quiesce();
  for (size_t node = 0; node < 3; ++node) EXPECT_EQ(cluster.Values(node, "k", kOne), Values{});
}

// A backup is older than a delete that has been collected since. What is restored of it is younger than that,
// is there once however often it is sent, and goes for good when it is deleted.
TEST(CasesA, Case1_ARestoredBackupIsNewPutsAndBringsNoOldOnesBack) {
  ScriptedCluster cluster;
  cluster.Put(0, {.key = "k", .value = "v", .w = kAll});
  const Record backup = cluster.OnDisk(0, "k");
  cluster.Delete(1, {.key = "k", .context = cluster.Get(1, {.key = "k"}).context});
  cluster.Quiesce();
  ASSERT_TRUE(cluster.RunUntilCollected());
  ExpectNothingOnDisk(cluster);

  const uint64_t cut = cluster.CutOfAll(0);
  PutCall restored = {.key = "k",
                      .value = backup.versions.at(0).value,
                      .context = cluster.Get(2, {.key = "k", .r = kAll}).context,
                      .expires_ms = 0,
                      .write_id = {1, 2}};
  cluster.Put(2, restored);
  cluster.Quiesce();
  const Record first = cluster.OnDisk(0, "k");
  ASSERT_EQ(first.versions.size(), 1u);
  EXPECT_GT(first.versions[0].dot.counter, cut) << "what was collected does not cover it";
  EXPECT_FALSE(first.seen.Covers(backup.versions[0].dot)) << "nothing of the backup but its values";
  restored.retry = true;  // as a restore that goes on does
  cluster.Put(0, restored);
  cluster.Quiesce();
  for (size_t node = 0; node < 3; ++node) EXPECT_EQ(cluster.OnDisk(node, "k"), first) << node;

  cluster.Kill(2);
  cluster.Run(Millis(100));
  cluster.Delete(1, {.key = "k"});
  cluster.PassWeeks(1);
  cluster.Start(2);
  cluster.Quiesce();
  ASSERT_TRUE(cluster.RunUntilCollected());
  for (size_t node = 0; node < 3; ++node) EXPECT_EQ(cluster.Values(node, "k"), Values{});
  ExpectNothingOnDisk(cluster);
}

// Files are flushed and merged in many orders, with what was put in some and what was deleted in others.
TEST(CasesA, Case3_WhatWasDeletedStaysSoOverFlushesCompactionsAndRestarts) {
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    sim::Random random(seed);
    RocksWorld world({.cache_bytes = 1 << 20, .write_buffer_bytes = 64 << 10, .log_bytes_max = 64 << 20});
    auto store = std::make_unique<Store>(world.engine());
    std::map<std::string, RecordBytes> model;
    const auto row_key_of = [](uint64_t i) {
      return MakeRowKey(1, i * 0x9e3779b97f4a7c15, "k" + std::to_string(i));
    };
    const auto commit = [&](const std::string& row_key, RecordBytes after) {
      const RowWrite write = {row_key, model[row_key], after};
      ASSERT_TRUE(store->Commit({&write, 1}, {}, Durability::kMemory).ok());
      model[row_key] = std::move(after);
    };
    for (uint64_t step = 1; step <= 2500; ++step) {
      const std::string row_key = row_key_of(random.Below(200));
      const RecordBytes before = model[row_key];
      Record record = before ? *DecodeRecord(*before) : Record{};
      switch (random.Below(4)) {
        case 0:  // a delete by a client
          ApplyDelete(record, DotOf(step), {.seen = record.seen});
          commit(row_key, std::make_shared<const std::string>(EncodeRecord(record)));
          break;
        case 1:  // a tombstone is collected
          if (record.tombstone()) commit(row_key, nullptr);
          break;
        default:
          ApplyPut(record, {.dot = DotOf(step), .value = std::string(random.Below(600), 'v')}, nullptr);
          commit(row_key, std::make_shared<const std::string>(EncodeRecord(record)));
      }
      if (step % 500 != 0) continue;
      store.reset();
      world.Reopen();  // which flushes, and now and then merges
      store = std::make_unique<Store>(world.engine());
      for (const auto& [key, expected] : model) {
        const RecordBytes found = *store->ReadRows({&key, 1})[0];
        ASSERT_EQ(found == nullptr, expected == nullptr) << "seed " << seed << " step " << step;
        if (found != nullptr) {
          ASSERT_EQ(*found, *expected) << "seed " << seed << " step " << step;
        }
      }
      ASSERT_EQ(store->Verify()->differences, 0u);
    }
  }
}

// Puts with W of one, reads of all replicas and deletes of a key race, and other keys are written all the
// while, also while the tombstones are collected.
TEST(CasesA, Case5_AllTombstonesAreCollectedWhileWritesGoOn) {
  ScriptedCluster cluster;
  constexpr int kKeys = 3000;
  constexpr int kBusyKeys = 50;
  sim::Random random(5);
  cluster.SetDelay([&](size_t, size_t, const Message&) { return random.Between({100}, Millis(3)); });
  int under_way = 0;
  const auto ask = [&](size_t node, Call call) {
    ++under_way;
    cluster.AskLater(node, std::move(call), [&](const CallResult& result) {
      EXPECT_TRUE(result.status.ok()) << result.status;
      --under_way;
    });
  };
  const auto key_of = [](int i) { return "k" + std::to_string(i); };
  const auto busy_key_of = [](int i) { return "busy" + std::to_string(i % kBusyKeys); };
  const auto node_of = [](int i) { return static_cast<size_t>(i) % 3; };
  for (int i = 0; i < kKeys; ++i) {
    ask(node_of(i), PutCall{.key = key_of(i), .value = "v", .w = kOne});
    if (i % 2 == 0) cluster.Run({500});
    ask(node_of(i + 1), GetCall{.key = key_of(i), .r = kAll});
    ask(node_of(i + 2), DeleteCall{.key = key_of(i)});
    ask(node_of(i), PutCall{.key = busy_key_of(i), .value = "v"});
  }
  ASSERT_TRUE(cluster.RunUntil([&] { return under_way == 0; }));
  // Some were deleted before they were put.
  for (int i = 0; i < kKeys; ++i) {
    ask(node_of(i), DeleteCall{.key = key_of(i)});
    ask(node_of(i + 1), PutCall{.key = busy_key_of(i), .value = "v"});
    cluster.Run({500});
  }
  const auto only_busy_keys = [&] {
    for (size_t node = 0; node < 3; ++node) {
      if (cluster.RowsOnDisk(node) != kBusyKeys) return false;
    }
    return true;
  };
  const Micros end = cluster.now() + Seconds(120);
  for (int i = 0; cluster.now() < end && !only_busy_keys(); ++i) {
    for (int write = 0; write < 20; ++write) {
      ask(node_of(write), PutCall{.key = busy_key_of(20 * i + write), .value = "v"});
      cluster.Run(Millis(1));
    }
  }
  ASSERT_TRUE(only_busy_keys());
  ASSERT_TRUE(cluster.RunUntil([&] { return under_way == 0; }));
  for (int i = 0; i < kBusyKeys; ++i) cluster.Delete(node_of(i), {.key = busy_key_of(i)});
  cluster.Quiesce();
  ASSERT_TRUE(cluster.RunUntilCollected());
  ExpectNothingOnDisk(cluster);
  for (size_t node = 0; node < 3; ++node) EXPECT_TRUE(cluster.ScanAll(node).empty());
}

// Puts and deletes race, some with W of one, reads of all replicas between them.
TEST(CasesA, Case6_AScanNeverListsWhatWasDeleted) {
  ScriptedCluster cluster;
  constexpr int kKeys = 300;
  int under_way = 0;
  const auto count = [&](const CallResult& result) {
    EXPECT_TRUE(result.status.ok()) << result.status;
    --under_way;
  };
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "k" + std::to_string(i);
    const auto node = static_cast<size_t>(i) % 3;
    if (i == kKeys / 3 || i == 2 * kKeys / 3) {
      ASSERT_TRUE(cluster.RunUntil([&] { return under_way == 0; }));
      if (cluster.alive(2)) {
        cluster.Kill(2);
      } else {
        cluster.Start(2);
      }
    }
    const size_t alive = cluster.alive(node) ? node : 0;
    cluster.Run(Millis(i % 50 == 0 ? 100 : 1));
    // Two of three: a delete without a context reads two, and would not have to meet a put that one
    // confirmed.
    cluster.Put(alive, {.key = key, .value = "v"});
    under_way += 2;
    cluster.AskLater(alive, GetCall{.key = key}, count);
    cluster.AskLater(alive, DeleteCall{.key = key}, count);
  }
  ASSERT_TRUE(cluster.RunUntil([&] { return under_way == 0; }));
  const auto expect_empty_scans = [&] {
    for (size_t node = 0; node < 3; ++node)
      EXPECT_EQ(cluster.ScanAll(node), (std::map<std::string, Values>()));
  };
  expect_empty_scans();
  cluster.Quiesce();
  expect_empty_scans();
  ASSERT_TRUE(cluster.RunUntilCollected());
  expect_empty_scans();
  ExpectNothingOnDisk(cluster);
  for (int i = 0; i < kKeys; ++i) EXPECT_EQ(cluster.Values(1, "k" + std::to_string(i)), Values{});
}

// Expired values on some replicas only, on one replica whose clock is behind: they are made equal once, and
// then nobody sends them again, though they are compared all the while that they leave the disks.
TEST(CasesA, Case7_ExpiredValuesAreNotPassedToAndFro) {
  ScriptedCluster cluster;
  cluster.node(1).JumpWallClock(-400);
  cluster.SetFilter(NeitherHintsNorComparisons);
  for (int i = 0; i < 200; ++i) {
    if (i == 100) {
      cluster.Kill(2);
      cluster.Run(Millis(100));
    }
    cluster.Put(static_cast<size_t>(i) % 2, {.key = "k" + std::to_string(i), .value = "v", .ttl_ms = 5000});
  }
  cluster.Start(2);
  cluster.Run(Seconds(10));
  cluster.SetFilter({});
  cluster.Quiesce();
  const uint64_t repairs = cluster.repairs();
  for (int repair = 0; repair < 300; ++repair) {
    for (size_t node = 0; node < 3; ++node) cluster.node(node).Push(RepairNow{});
    cluster.Run(Millis(200));
  }
  ExpectNothingOnDisk(cluster);
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(cluster.Values(static_cast<size_t>(i) % 3, "k" + std::to_string(i)), Values{});
  for (size_t node = 0; node < 3; ++node) EXPECT_TRUE(cluster.ScanAll(node).empty());
  EXPECT_EQ(cluster.repairs(), repairs);
}

// Asked every millisecond around the moment, through every node: the value, or nothing.
TEST(CasesA, Case9_AroundItsExpiryAKeyIsThereOrNotAndNothingBetween) {
  ScriptedCluster cluster;
  cluster.node(1).JumpWallClock(-100);
  const std::string context = cluster.Put(0, {.key = "k", .value = "v", .w = kAll, .ttl_ms = 1000});
  const Micros begun = cluster.now();
  bool gone[3] = {};
  int shown = 0;
  int unseen = 0;
  int under_way = 0;
  while (cluster.now() < begun + Seconds(2)) {
    for (size_t node = 0; node < 3; ++node) {
      ++under_way;
      cluster.AskLater(node, GetCall{.key = "k"}, [&, node](const CallResult& result) {
        --under_way;
        ASSERT_TRUE(result.status.ok()) << result.status;
        const GetResult& get = std::get<GetResult>(result.result);
        ++(get.values.empty() ? unseen : shown);
        ASSERT_LE(get.values.size(), 1u);
        EXPECT_FALSE(get.context.empty());
        if (!get.values.empty()) {
          EXPECT_EQ(get.values[0].value, "v");
          EXPECT_FALSE(gone[node]) << "it came back";
        }
        gone[node] = get.values.empty();
      });
    }
    cluster.Run(Millis(1));
  }
  ASSERT_TRUE(cluster.RunUntil([&] { return under_way == 0; }));
  EXPECT_GT(shown, 2700);
  EXPECT_GT(unseen, 2700);
}

// One replica holds a new value, another an older tombstone: whichever answers first, the value is read.
TEST(CasesA, Case12_AnOlderTombstoneDestroysNothingInWhateverOrderItArrives) {
  for (const bool causal : {true, false}) {
    ScriptedCluster cluster;
    sim::Random random(7);
    cluster.SetDelay([&](size_t, size_t, const Message&) { return random.Between({100}, Millis(5)); });
    for (int i = 0; i < 500; ++i) {
      const std::string key = "k" + std::to_string(i);
      Record tombstone;
      ApplyPut(tombstone, {.dot = DotOf(1), .value = "old"}, nullptr);
      ApplyDelete(tombstone, DotOf(2), {.seen = tombstone.seen});
      Record object = causal ? tombstone : Record{};
      ApplyPut(object, {.dot = DotOf(3, kStranger + 1), .value = "new"}, nullptr);
      cluster.Inject(0, cluster.RowKeyOf(key), i % 2 == 0 ? tombstone : object);
      cluster.Inject(1, cluster.RowKeyOf(key), i % 2 == 0 ? object : tombstone);
      if (i % 3 == 0) cluster.Inject(2, cluster.RowKeyOf(key), tombstone);
      EXPECT_EQ(cluster.Values(static_cast<size_t>(i) % 3, key), Values{"new"}) << i;
    }
    cluster.Quiesce();
    EXPECT_EQ(cluster.ScanAll(1).size(), 500u);
  }
}

TEST(CasesA, Case14_ADeleteOfAKeyThatWasOverwrittenWithATtlHoldsAfterTheExpiry) {
  for (const bool with_context : {true, false}) {
    for (const bool stale : {true, false}) {
      ScriptedCluster cluster;
      cluster.Put(0, {.key = "k", .value = "for ever", .w = kAll});
      if (stale) {  // one replica holds the first value to the end
        cluster.SetFilter(NeitherHintsNorComparisons);
        cluster.Part({2});
        cluster.Run(Millis(100));
      }
      cluster.Put(1, {.key = "k", .value = "for a while", .ttl_ms = 2000});
      DeleteCall call = {.key = "k"};
      if (with_context) call.context = cluster.Get(0, {.key = "k"}).context;
      cluster.Delete(0, call);
      cluster.Run(Seconds(3));
      cluster.Mend();
      cluster.Run(Millis(100));
      for (size_t node = 0; node < 3; ++node) EXPECT_EQ(cluster.Values(node, "k"), Values{});
      cluster.SetFilter({});
      cluster.Quiesce();
      for (size_t node = 0; node < 3; ++node) EXPECT_EQ(cluster.Values(node, "k", kOne), Values{});
    }
  }
}

}  // namespace
}  // namespace gyre::cases
