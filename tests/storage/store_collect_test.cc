// The index of what a stable cut will collect follows the rows, also over crashes, and so does its count.
#include <gtest/gtest.h>
#include <set>

#include "storage/memory_engine.h"
#include "storage/store.h"
#include "tests/storage/worlds.h"

namespace gyre {
namespace {

constexpr uint32_t kKeyspace = 2;

RecordBytes Encoded(const Record& record) {
  return std::make_shared<const std::string>(EncodeRecord(record));
}

RecordBytes Tombstone(uint64_t counter) {
  Record record;
  record.seen.Add({{1, 0}, counter});
  return Encoded(record);
}

RecordBytes Value(uint64_t counter, uint64_t expires_ms = 0) {
  Record record;
  ApplyPut(record, {.dot = {{1, 0}, counter}, .expires_ms = expires_ms, .value = "v"}, nullptr);
  return Encoded(record);
}

struct StoreCollectTest : testing::Test {
  MemoryEngine engine;
  std::unique_ptr<Store> store = std::make_unique<Store>(engine);

  static std::string RowKey(uint64_t token) { return MakeRowKey(kKeyspace, token, "k"); }
  absl::Status Put(uint64_t token, RecordBytes after) {
    const std::string key = RowKey(token);
    const RowWrite write{key, *store->ReadRows({&key, 1})[0], std::move(after)};
    return store->Commit({&write, 1}, {}, Durability::kDisk);
  }
  void Recount() {
    while (store->RecountSome(1)) {
    }
  }
  void Restart(MemoryEngine::CrashKind kind) {
    store.reset();
    engine.Crash(kind);
    store = std::make_unique<Store>(engine);
  }
  std::set<std::string> Index() {
    std::set<std::string> keys;
    EXPECT_TRUE(engine
                    .Scan(Table::kCollect, {},
                          [&](std::string_view key, std::string_view) {
                            keys.emplace(key);
                            return true;
                          })
                    .ok());
    return keys;
  }
  using Keys = std::set<std::string>;
};

TEST_F(StoreCollectTest, ItHoldsARowByTheCutAtWhichSomethingOfItMayGo) {
  ASSERT_TRUE(Put(1, Value(10)).ok());
  EXPECT_EQ(Index(), Keys{});
  ASSERT_TRUE(Put(1, Tombstone(20)).ok());
  ASSERT_TRUE(Put(2, Value(10, /*expires_ms=*/3)).ok());
  EXPECT_EQ(Index(), (Keys{MakeCollectKey(RowKey(1), 20), MakeCollectKey(RowKey(2), CounterOfMillis(3))}));
  EXPECT_EQ(store->collectible(), 2u);
  ASSERT_TRUE(Put(1, Value(30)).ok());
  ASSERT_TRUE(Put(2, nullptr).ok());
  EXPECT_EQ(Index(), Keys{});
  EXPECT_EQ(store->collectible(), 0u);
}

TEST_F(StoreCollectTest, HintsAreNotInIt) {
  const std::string key = MakeHintKey(7, RowKey(1));
  const RowWrite write{key, nullptr, Tombstone(20)};
  ASSERT_TRUE(store->Commit({&write, 1}, {}, Durability::kDisk).ok());
  EXPECT_EQ(Index(), Keys{});
}

TEST_F(StoreCollectTest, ItIsCountedAfterAStartWhileRowsChange) {
  for (uint64_t token = 1; token <= 5; ++token) ASSERT_TRUE(Put(token, Tombstone(10 * token)).ok());
  Restart(MemoryEngine::CrashKind::kPower);
  EXPECT_TRUE(store->RecountSome(2));       // the first two are counted
  ASSERT_TRUE(Put(1, nullptr).ok());        // one of them
  ASSERT_TRUE(Put(5, nullptr).ok());        // one that is not yet
  ASSERT_TRUE(Put(6, Tombstone(60)).ok());  // one behind
  ASSERT_TRUE(Put(7, Tombstone(5)).ok());   // one before
  Recount();
  EXPECT_EQ(store->collectible(), 5u);
  EXPECT_EQ(Index().size(), 5u);
}

TEST_F(StoreCollectTest, AFailedBatchThatTurnsUpCostsNoEntryOfARow) {
  ASSERT_TRUE(Put(1, Tombstone(20)).ok());
  engine.FailNextWrite(absl::UnavailableError("no"), MemoryEngine::FailedBatch::kInLog);
  ASSERT_FALSE(Put(1, Tombstone(30)).ok());  // would erase the entry and make another
  ASSERT_TRUE(Put(1, Tombstone(20)).ok());   // the row as it is, written again
  Restart(MemoryEngine::CrashKind::kPower);
  EXPECT_TRUE(Index().contains(MakeCollectKey(RowKey(1), 20)));
}

TEST_F(StoreCollectTest, AWrongCountIsMendedWithTheNextSave) {
  ASSERT_TRUE(Put(1, Tombstone(20)).ok());
  engine.FailNextWrite(absl::UnavailableError("no"), MemoryEngine::FailedBatch::kInLog);
  ASSERT_FALSE(Put(1, Tombstone(30)).ok());
  ASSERT_TRUE(Put(1, Value(40)).ok());
  Restart(MemoryEngine::CrashKind::kPower);
  Recount();
  ASSERT_EQ(Index(), Keys{MakeCollectKey(RowKey(1), 30)}) << "an entry of no row";
  ASSERT_TRUE(Put(1, Tombstone(30)).ok());  // now it is one of a row again
  EXPECT_EQ(store->collectible(), 2u);
  ASSERT_TRUE(store->SaveSums().ok());
  Recount();
  EXPECT_EQ(store->collectible(), 1u);
}

TEST_F(StoreCollectTest, ADroppedKeyspaceLeavesNothingInIt) {
  ASSERT_TRUE(Put(1, Tombstone(20)).ok());
  ASSERT_TRUE(store->DropKeyspace(kKeyspace).ok());
  Recount();
  EXPECT_EQ(Index(), Keys{});
  EXPECT_EQ(store->collectible(), 0u);
}

}  // namespace
}  // namespace gyre
