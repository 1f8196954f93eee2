// What can be read of a damaged store is copied, and only that; what rests on the whole is left behind.
#include "storage/salvage.h"

#include <gtest/gtest.h>

#include "storage/damage.h"
#include "storage/format/meta_codec.h"
#include "tests/storage/rocks_world.h"
#include "tests/storage/rot.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kTarget = 0xb0b;
const RocksOptions kSmall = {
    .cache_bytes = 1 << 20, .write_buffer_bytes = 256 << 10, .log_bytes_max = 64 << 20};

RecordBytes RecordOf(uint64_t counter, const std::string& value) {
  Record record;
  if (value.empty()) {
    record.seen.Add({{1, 0}, counter});
  } else {
    ApplyPut(record, {.dot = {{1, 0}, counter}, .expires_ms = 0, .value = value}, nullptr);
  }
  return Bytes(EncodeRecord(record));
}

std::string RowKeyOf(int i) {
  return MakeRowKey(static_cast<uint32_t>(i % 2), static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15,
                    "key" + std::to_string(i));
}

bool GoOn() { return true; }

// What a node has written.
absl::Status Fill(Engine& engine, int rows, int hints) {
  Store store(engine);
  const CutMarks marks = {.confirmed = 70, .cut = 60};
  const EngineWrite facts[] = {
      {Table::kMeta, std::string(kMetaActor), Bytes(EncodeActorState({.incarnation = 3}))},
      {Table::kMeta, std::string(kMetaOwner), Bytes("12345678")},
      {Table::kMeta, std::string(kMetaFilling), Bytes("")},
      {Table::kMeta, std::string(kMetaMoves), Bytes("moves")},
      {Table::kMeta, std::string(kMetaStableCut), Bytes(EncodeCutMarks(marks))},
      {Table::kMeta, std::string(kMetaMembership) + "layout", Bytes("layout")},
  };
  if (absl::Status status = store.Commit({}, facts, Durability::kMemory); !status.ok()) return status;
  for (int i = 0; i < std::max(rows, hints); ++i) {
    std::vector<RowWrite> writes;
    // Each tenth is a tombstone.
    const RecordBytes record = RecordOf(100 + static_cast<uint64_t>(i), std::string(i % 10 ? 500 : 0, 'v'));
    if (i < rows) writes.push_back({RowKeyOf(i), nullptr, record});
    if (i < hints) writes.push_back({MakeHintKey(kTarget, RowKeyOf(i)), nullptr, record});
    if (absl::Status status = store.Commit(writes, {}, Durability::kMemory); !status.ok()) return status;
  }
  return store.SaveSums();
}

// All of `part` is in `whole`, which has at most `more_max` beside it.
void ExpectPartOf(const std::map<std::string, std::string>& part,
                  const std::map<std::string, std::string>& whole, size_t more_max) {
  for (const auto& [key, value] : part) {
    const auto found = whole.find(key);
    ASSERT_NE(found, whole.end());
    EXPECT_EQ(found->second, value);
  }
  EXPECT_GE(part.size() + more_max, whole.size());
}

// The index and the sums are as rows that were written one by one would have made them.
void ExpectConsistent(Engine& engine) {
  Store store(engine);
  const auto verified = store.Verify();
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->differences, 0u);
  size_t collectible = 0;
  for (const auto& [key, record] : Contents(engine, Table::kRows)) {
    const uint64_t cut = CollectibleFrom(record);
    if (cut == kNeverCollectible) continue;
    ++collectible;
    EXPECT_TRUE(engine.Get(Table::kCollect, MakeCollectKey(key, cut)).ok());
  }
  EXPECT_EQ(Contents(engine, Table::kCollect).size(), collectible);
}

// In memory an entry lies in one place, and is damaged by itself.
class MemoryRemains final : public Remains {
 public:
  explicit MemoryRemains(MemoryEngine& engine) : engine_(engine) {}
  Engine& engine() override { return engine_; }
  absl::Status Scan(Table table, const KeyRange& range, Reader& reader) override {
    KeyRange left = range;
    for (;;) {
      const auto visit = [&](std::string_view key, std::string_view value) {
        left.begin = std::string(key) + '\0';
        return reader.Entry(key, value);
      };
      const absl::Status status = engine_.Scan(table, left, visit);
      if (!absl::IsDataLoss(status)) return status;
      reader.Damage(status);
      left.begin = BehindDamage(engine_, table, left);
    }
  }

 private:
  MemoryEngine& engine_;
};

absl::StatusOr<Salvaged> SalvageTo(Remains& damaged, Engine& fresh) {
  Store store(fresh);
  absl::StatusOr<Salvaged> salvaged = Salvage(damaged, store, GoOn);
  EXPECT_TRUE(store.SaveSums().ok());
  return salvaged;
}

absl::StatusOr<Salvaged> SalvageTo(MemoryEngine& damaged, Engine& fresh) {
  MemoryRemains remains(damaged);
  return SalvageTo(remains, fresh);
}

TEST(SalvageTest, OfAWholeStoreAllButWhatRestsOnItIsCopied) {
  MemoryEngine damaged;
  MemoryEngine fresh;
  ASSERT_TRUE(Fill(damaged, 3000, 1000).ok());
  const absl::StatusOr<Salvaged> salvaged = SalvageTo(damaged, fresh);
  ASSERT_TRUE(salvaged.ok()) << salvaged.status();
  EXPECT_EQ(salvaged->rows, 3000u);
  EXPECT_EQ(salvaged->hints, 1000u);
  EXPECT_EQ(salvaged->places, 0u);
  EXPECT_EQ(Contents(fresh, Table::kRows), Contents(damaged, Table::kRows));
  EXPECT_EQ(Contents(fresh, Table::kHints), Contents(damaged, Table::kHints));
  EXPECT_EQ(Contents(fresh, Table::kCollect), Contents(damaged, Table::kCollect));
  ExpectConsistent(fresh);
  const auto facts = ReadFacts(fresh);
  ASSERT_TRUE(facts.ok());
  const std::map<std::string, std::string> expected = {
      {std::string(kMetaOwner), "12345678"},
      {std::string(kMetaMembership) + "layout", "layout"},
      {std::string(kMetaStableCut), EncodeCutMarks({.confirmed = 70, .cut = 0})}};
  EXPECT_EQ(*facts, expected);
}

TEST(SalvageTest, WhatCannotBeReadIsPassedOverAndCounted) {
  MemoryEngine damaged;
  MemoryEngine fresh;
  ASSERT_TRUE(Fill(damaged, 3000, 1000).ok());
  auto rows = Contents(damaged, Table::kRows);
  auto hints = Contents(damaged, Table::kHints);
  const auto corrupt = [&](Table table, std::map<std::string, std::string>& left, size_t place) {
    const std::string key = std::next(left.begin(), static_cast<ptrdiff_t>(place))->first;
    damaged.Corrupt(table, key);
    left.erase(key);
  };
  for (const size_t place : {0u, 1000u, 2997u}) corrupt(Table::kRows, rows, place);
  for (const size_t place : {0u, 500u}) corrupt(Table::kHints, hints, place);
  // One whose bytes are those that were written, and no record.
  const EngineWrite garbled = {Table::kRows, rows.begin()->first, Bytes("no record")};
  ASSERT_TRUE(damaged.Apply({&garbled, 1}, Durability::kDisk, "").ok());
  rows.erase(rows.begin());
  const absl::StatusOr<Salvaged> salvaged = SalvageTo(damaged, fresh);
  ASSERT_TRUE(salvaged.ok()) << salvaged.status();
  EXPECT_EQ(salvaged->places, 6u);
  EXPECT_TRUE(absl::IsDataLoss(salvaged->first));
  EXPECT_EQ(Contents(fresh, Table::kRows), rows);
  EXPECT_EQ(Contents(fresh, Table::kHints), hints);
  ExpectConsistent(fresh);
}

TEST(SalvageTest, FactsThatCannotBeReadEndItButSavedSumsDoNot) {
  MemoryEngine damaged;
  ASSERT_TRUE(Fill(damaged, 30, 0).ok());
  damaged.Corrupt(Table::kMeta, std::string(kMetaSums) + "00000000");
  MemoryEngine fresh;
  EXPECT_TRUE(SalvageTo(damaged, fresh).ok());
  damaged.Corrupt(Table::kMeta, std::string(kMetaMembership) + "layout");
  MemoryEngine another;
  EXPECT_TRUE(absl::IsDataLoss(SalvageTo(damaged, another).status()));
}

TEST(SalvageTest, ItEndsWhenItIsToldTo) {
  MemoryEngine damaged;
  MemoryEngine fresh;
  ASSERT_TRUE(Fill(damaged, 10'000, 0).ok());
  MemoryRemains remains(damaged);
  Store store(fresh);
  int steps = 0;
  EXPECT_TRUE(absl::IsCancelled(Salvage(remains, store, [&] { return ++steps < 3; }).status()));
  EXPECT_EQ(steps, 3);
}

// On real files.
class SalvageOfFiles : public testing::Test {
 protected:
  void Fill(int rows, int hints) {
    const absl::Status status = gyre::Fill(world_.engine(), rows, hints);
    ASSERT_TRUE(status.ok()) << status;
    rows_ = Contents(world_.engine(), Table::kRows);
    hints_ = Contents(world_.engine(), Table::kHints);
    world_.Close();
  }
  // And the damaged store stays as it is.
  Salvaged Salvage() {
    const std::map<std::string, std::string> before = FilesOf(world_.path());
    const auto damaged = RocksEngine::OpenDamaged(world_.path(), scratch_, kSmall);
    EXPECT_TRUE(damaged.ok()) << damaged.status();
    if (!damaged.ok()) return {};
    const absl::StatusOr<Salvaged> salvaged = SalvageTo(**damaged, fresh_.engine());
    EXPECT_TRUE(salvaged.ok()) << salvaged.status();
    EXPECT_TRUE(FilesOf(world_.path()) == before);
    fresh_.Reopen();
    ExpectConsistent(fresh_.engine());
    return salvaged.ok() ? *salvaged : Salvaged{};
  }

  RocksWorld world_{kSmall};
  RocksWorld fresh_{kSmall};
  TemporaryDirectory directory_;
  const std::string scratch_ = directory_.path() + "/scratch";
  std::map<std::string, std::string> rows_;
  std::map<std::string, std::string> hints_;
};

TEST_F(SalvageOfFiles, Case79_AllRowsButThoseOfRottenBlocksAreCopied) {
  Fill(4000, 1000);
  world_.Reopen();
  world_.Close();
  const fs::path table = Largest(world_.path(), ".sst");
  ASSERT_FALSE(table.empty());
  for (const uintmax_t place : {fs::file_size(table) / 4, fs::file_size(table) / 2}) FlipByte(table, place);
  const Salvaged salvaged = Salvage();
  EXPECT_GE(salvaged.places, 1u);
  const auto rows = Contents(fresh_.engine(), Table::kRows);
  const auto hints = Contents(fresh_.engine(), Table::kHints);
  ExpectPartOf(rows, rows_, 200);  // a block holds a few only
  ExpectPartOf(hints, hints_, 200);
  EXPECT_LT(rows.size() + hints.size(), rows_.size() + hints_.size());
  EXPECT_EQ(salvaged.rows, rows.size());
  EXPECT_EQ(salvaged.hints, hints.size());
}

TEST_F(SalvageOfFiles, Case79_ATableThatIsCutOffOrGoneIsPassedOver) {
  Fill(6000, 0);
  world_.Reopen();
  world_.Close();
  const fs::path table = Largest(world_.path(), ".sst");
  ASSERT_FALSE(table.empty());
  fs::resize_file(table, fs::file_size(table) / 2);
  EXPECT_TRUE(absl::IsDataLoss(RocksEngine::Open(world_.path(), kSmall).status()));
  EXPECT_GE(Salvage().places, 1u);
  const auto rows = Contents(fresh_.engine(), Table::kRows);
  ExpectPartOf(rows, rows_, rows_.size());  // of those, in the newest tables one may hide all
  fs::remove(table);
  EXPECT_TRUE(absl::IsDataLoss(RocksEngine::Open(world_.path(), kSmall).status()));
  RocksWorld another(kSmall);
  const auto damaged = RocksEngine::OpenDamaged(world_.path(), scratch_, kSmall);
  ASSERT_TRUE(damaged.ok()) << damaged.status();
  EXPECT_TRUE(SalvageTo(**damaged, another.engine()).ok());
  EXPECT_EQ(Contents(another.engine(), Table::kRows), rows);
}

TEST_F(SalvageOfFiles, Case84_WhatTheLogHoldsBeforeAndBehindItsDamageIsCopied) {
  Fill(150, 0);
  const fs::path log = Largest(world_.path(), ".log");
  FlipByte(log, fs::file_size(log) / 2);
  EXPECT_TRUE(absl::IsDataLoss(RocksEngine::Open(world_.path(), kSmall).status()));
  Salvage();
  const auto rows = Contents(fresh_.engine(), Table::kRows);
  ExpectPartOf(rows, rows_, 1);
  EXPECT_LT(rows.size(), rows_.size());
}

// A batch that lies in several blocks of the log is whole or not there, and takes no other with it.
TEST_F(SalvageOfFiles, Case84_ADamagedBatchOfTheLogTakesNoOtherWithIt) {
  Fill(0, 0);
  world_.Reopen();
  constexpr int kBatches = 20;
  constexpr int kRowsOfBatch = 7;
  {
    Store store(world_.engine());
    for (int batch = 0; batch < kBatches; ++batch) {
      std::vector<RowWrite> rows;
      for (int i = 0; i < kRowsOfBatch; ++i) {
        rows.push_back({RowKeyOf(batch * kRowsOfBatch + i), nullptr, RecordOf(100, std::string(9000, 'v'))});
      }
      ASSERT_TRUE(store.Commit(rows, {}, Durability::kMemory).ok());
    }
  }
  rows_ = Contents(world_.engine(), Table::kRows);
  world_.Close();
  const fs::path log = Largest(world_.path(), ".log");
  for (const int part : {1, 3}) FlipByte(log, fs::file_size(log) * static_cast<uintmax_t>(part) / 4);
  Salvage();
  const auto rows = Contents(fresh_.engine(), Table::kRows);
  ExpectPartOf(rows, rows_, size_t{2} * kRowsOfBatch);
  EXPECT_EQ(rows.size() % kRowsOfBatch, 0u);
}

TEST_F(SalvageOfFiles, Case90_WithoutTheListOfItsTablesNothingIsRead) {
  Fill(300, 0);
  fs::path manifest;
  for (const fs::directory_entry& entry : fs::directory_iterator(world_.path())) {
    if (entry.path().filename().string().starts_with("MANIFEST")) manifest = entry.path();
  }
  ASSERT_FALSE(manifest.empty());
  FlipByte(manifest, 3);
  EXPECT_TRUE(absl::IsDataLoss(RocksEngine::Open(world_.path(), kSmall).status()));
  EXPECT_TRUE(absl::IsDataLoss(RocksEngine::OpenDamaged(world_.path(), scratch_, kSmall).status()));
  FlipByte(manifest, 3);
  world_.Reopen();
  EXPECT_EQ(Contents(world_.engine(), Table::kRows), rows_);
}

}  // namespace
}  // namespace gyre
