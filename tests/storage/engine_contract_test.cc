// What Engine promises holds for every engine: the same operations give the same answers.
#include <gtest/gtest.h>
#include <map>

#include "tests/storage/rocks_world.h"

namespace gyre {
namespace {

using MakeWorld = std::unique_ptr<World> (*)();

class EngineContract : public testing::TestWithParam<MakeWorld> {
 protected:
  EngineContract() : world_(GetParam()()) {}
  Engine& engine() { return world_->engine(); }
  void Put(Table table, const std::string& key, const std::string& value, const std::string& note = {}) {
    const EngineWrite write{table, key, Bytes(value)};
    ASSERT_TRUE(engine().Apply({&write, 1}, Durability::kDisk, note).ok());
  }
  std::vector<std::string> Notes(uint64_t sequence) {
    std::vector<std::string> notes;
    EXPECT_TRUE(
        engine().ReplayNotes(sequence, [&](std::string_view note) { notes.emplace_back(note); }).ok());
    return notes;
  }
  std::unique_ptr<World> world_;
};

TEST_P(EngineContract, TablesAreApart) {
  Put(Table::kRows, "k", "row");
  Put(Table::kMeta, "k", "");
  EXPECT_EQ(*engine().Get(Table::kRows, "k"), "row");
  EXPECT_EQ(*engine().Get(Table::kMeta, "k"), "");
  EXPECT_TRUE(absl::IsNotFound(engine().Get(Table::kHints, "k").status()));
}

TEST_P(EngineContract, WritesOfABatchAreAppliedInOrder) {
  const EngineWrite writes[] = {{Table::kRows, "a", Bytes("1")},
                                {Table::kRows, "a", nullptr},
                                {Table::kRows, "b", Bytes("1")},
                                {Table::kRows, "b", Bytes("2")}};
  ASSERT_TRUE(engine().Apply(writes, Durability::kMemory, {}).ok());
  EXPECT_TRUE(absl::IsNotFound(engine().Get(Table::kRows, "a").status()));
  EXPECT_EQ(*engine().Get(Table::kRows, "b"), "2");
}

TEST_P(EngineContract, MultiGetAnswersInTheOrderOfItsKeys) {
  Put(Table::kRows, "a", "1");
  Put(Table::kRows, "c", "3");
  const std::vector<std::string> keys = {"c", "b", "a", "c"};
  const auto values = engine().MultiGet(Table::kRows, keys);
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(*values[0], "3");
  EXPECT_TRUE(absl::IsNotFound(values[1].status()));
  EXPECT_EQ(*values[2], "1");
  EXPECT_EQ(*values[3], "3");
  EXPECT_TRUE(engine().MultiGet(Table::kRows, {}).empty());
}

TEST_P(EngineContract, ASnapshotIsOfItsMoment) {
  Put(Table::kRows, "a", "1");
  Put(Table::kRows, "b", "1");
  Put(Table::kHints, "h", "1");
  const auto snapshot = engine().Snapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  Put(Table::kRows, "a", "2");
  Put(Table::kRows, "c", "2");
  Put(Table::kHints, "h", "2");
  ASSERT_TRUE(engine().EraseRange(Table::kRows, {"b", "c"}).ok());
  EXPECT_EQ(*(*snapshot)->Get(Table::kHints, "h"), "1");
  EXPECT_TRUE(absl::IsNotFound((*snapshot)->Get(Table::kRows, "c").status()));
  std::map<std::string, std::string> rows;
  const auto keep = [&](std::string_view key, std::string_view value) {
    rows[std::string(key)] = value;
    return true;
  };
  ASSERT_TRUE((*snapshot)->Scan(Table::kRows, {}, keep).ok());
  EXPECT_EQ(rows, (std::map<std::string, std::string>{{"a", "1"}, {"b", "1"}}));
  rows.clear();
  ASSERT_TRUE((*snapshot)->Scan(Table::kRows, {"b", ""}, keep).ok());
  EXPECT_EQ(rows, (std::map<std::string, std::string>{{"b", "1"}}));
  EXPECT_EQ(*engine().Get(Table::kRows, "a"), "2");
}

TEST_P(EngineContract, ScanStopsWhenTold) {
  for (const char* key : {"a", "b", "c"}) Put(Table::kHints, key, key);
  int visited = 0;
  ASSERT_TRUE(engine().Scan(Table::kHints, {}, [&](auto, auto) { return ++visited < 2; }).ok());
  EXPECT_EQ(visited, 2);
  EXPECT_EQ(Contents(engine(), Table::kHints, {.begin = "b", .end = {}}).size(), 2u);
  EXPECT_EQ(Contents(engine(), Table::kHints, {.begin = "b", .end = "c"}).size(), 1u);
  EXPECT_EQ(Contents(engine(), Table::kHints, {.begin = "c", .end = "b"}).size(), 0u);
}

TEST_P(EngineContract, EveryBatchRaisesTheSequence) {
  uint64_t last = engine().LastSequence();
  for (int i = 0; i < 5; ++i) {
    Put(Table::kRows, "same", "same");
    EXPECT_GT(engine().LastSequence(), last);
    last = engine().LastSequence();
  }
  world_->Reopen();
  EXPECT_EQ(engine().LastSequence(), last);
}

TEST_P(EngineContract, NotesComeBackFromAnySequenceOn) {
  std::vector<uint64_t> sequences = {engine().LastSequence()};
  std::vector<std::string> notes;
  for (int i = 0; i < 50; ++i) {
    std::vector<EngineWrite> writes;
    for (int j = 0; j <= i % 4; ++j) writes.push_back({Table::kRows, std::to_string(j), Bytes("v")});
    notes.push_back(i % 5 == 0 ? "" : "note" + std::to_string(i));  // some batches have none
    ASSERT_TRUE(engine().Apply(writes, Durability::kDisk, notes.back()).ok());
    sequences.push_back(engine().LastSequence());
    if (i % 20 == 7) world_->Reopen();
  }
  for (size_t from = 0; from < sequences.size(); ++from) {
    std::vector<std::string> expected(notes.begin() + static_cast<long>(from), notes.end());
    std::erase(expected, "");
    EXPECT_EQ(Notes(sequences[from]), expected) << from;
  }
  EXPECT_TRUE(absl::IsDataLoss(engine().ReplayNotes(sequences.back() + 1, [](auto) {})));
}

TEST_P(EngineContract, EraseRangeErasesExactlyItsRange) {
  for (const char* key : {"a", "b", "c", "d"}) Put(Table::kRows, key, key);
  Put(Table::kHints, "b", "hint");
  ASSERT_TRUE(engine().EraseRange(Table::kRows, {.begin = "b", .end = "d"}).ok());
  EXPECT_EQ(Contents(engine(), Table::kRows), (std::map<std::string, std::string>{{"a", "a"}, {"d", "d"}}));
  EXPECT_EQ(*engine().Get(Table::kHints, "b"), "hint");
  Put(Table::kRows, "c", "again");
  ASSERT_TRUE(engine().EraseRange(Table::kRows, {.begin = "c", .end = "b"}).ok());
  world_->Reopen();
  EXPECT_EQ(*engine().Get(Table::kRows, "c"), "again");
  ASSERT_TRUE(engine().EraseRange(Table::kRows, {}).ok());
  ASSERT_TRUE(engine().EraseRange(Table::kRows, {}).ok());
  EXPECT_TRUE(Contents(engine(), Table::kRows).empty());
}

TEST_P(EngineContract, SizesAreEstimated) {
  for (int i = 0; i < 100; ++i) Put(Table::kRows, std::to_string(i), std::string(100, 'v'));
  EXPECT_EQ(engine().EstimateSize().keys, 100u);
  EXPECT_GE(engine().EstimateSize().bytes, 100 * 100u);
  EXPECT_TRUE(engine().Resume().ok());
  EXPECT_TRUE(engine().Sync().ok());
}

INSTANTIATE_TEST_SUITE_P(
    Engines, EngineContract,
    testing::Values(MakeWorld([]() -> std::unique_ptr<World> { return std::make_unique<MemoryWorld>(); }),
                    MakeWorld([]() -> std::unique_ptr<World> { return std::make_unique<RocksWorld>(); })),
    [](const auto& info) { return info.index == 0 ? "Memory" : "Rocks"; });

class RocksLikeItsModel : public testing::TestWithParam<int> {};

TEST_P(RocksLikeItsModel, SameOperationsSameAnswers) {
  RowMaker random(GetParam(), 1);
  MemoryWorld model;
  // Small buffers, so that tables are written and merged.
  RocksWorld rocks({.cache_bytes = 1 << 20, .write_buffer_bytes = 256 << 10, .log_bytes_max = 64 << 20});
  const auto key = [&] { return "key" + std::to_string(random.Next(300)); };
  const auto table = [&] { return static_cast<Table>(random.Next(kTables)); };
  for (int step = 0; step < 400; ++step) {
    const uint64_t choice = random.Next(40);
    if (choice < 25) {
      std::vector<EngineWrite> writes;
      for (size_t i = 0; i <= random.Next(30); ++i) {
        writes.push_back({table(), key(),
                          random.Next(4) ? Bytes(std::string(random.Next(2000), 'a' + step % 26)) : nullptr});
      }
      const Durability durability = random.Next(20) ? Durability::kMemory : Durability::kDisk;
      for (World* world : {static_cast<World*>(&model), static_cast<World*>(&rocks)}) {
        ASSERT_TRUE(world->engine().Apply(writes, durability, "note").ok());
      }
    } else if (choice < 30) {
      const Table which = table();
      const std::vector<std::string> keys = {key(), key(), key()};
      const auto ours = rocks.engine().MultiGet(which, keys);
      const auto theirs = model.engine().MultiGet(which, keys);
      for (size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(ours[i].status().code(), theirs[i].status().code());
        ASSERT_EQ(ours[i].value_or(""), theirs[i].value_or(""));
      }
    } else if (choice < 38) {
      const Table which = table();
      const KeyRange range{key(), random.Next(3) ? key() : ""};
      ASSERT_EQ(Contents(rocks.engine(), which, range), Contents(model.engine(), which, range));
    } else if (choice < 39) {
      const Table which = table();
      const KeyRange range{key(), key()};
      ASSERT_TRUE(rocks.engine().EraseRange(which, range).ok());
      ASSERT_TRUE(model.engine().EraseRange(which, range).ok());
    } else {
      ASSERT_NO_FATAL_FAILURE(rocks.Reopen());
      model.Reopen();
    }
  }
  for (int i = 0; i < kTables; ++i) {
    EXPECT_EQ(Contents(rocks.engine(), static_cast<Table>(i)),
              Contents(model.engine(), static_cast<Table>(i)));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RocksLikeItsModel, testing::Range(1, 9));

}  // namespace
}  // namespace gyre
