// Pages of rows, also of a store that is damaged in places.
#include "server/lane/answers.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>

#include "tests/storage/rocks_world.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kTarget = 0xb0b;

std::string RowKey(int i) {
  const std::string key = "key" + std::to_string(i);
  return MakeRowKey(1, static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15, key);
}
std::string HintKey(int i) { return MakeHintKey(kTarget, RowKey(i)); }

peer::FetchPage AllHints(uint32_t rows_max, bool skip_damage) {
  return {RowKeyFloor(kHintsKeyspace, kTarget), RowKeyCeiling(kHintsKeyspace, kTarget), rows_max, 1 << 20,
          skip_damage};
}

// All that is readable, page by page, and whether something was passed over.
std::pair<std::set<std::string>, bool> ReadAll(Engine& engine, peer::FetchPage page) {
  std::set<std::string> keys;
  bool skipped = false;
  for (int pages = 0; pages < 10'000; ++pages) {
    const peer::FetchPageReply reply = PageOf(engine, page);
    EXPECT_EQ(reply.code, absl::StatusCode::kOk);
    skipped = skipped || reply.skipped;
    for (const Row& row : reply.rows) EXPECT_TRUE(keys.insert(row.row_key).second);
    if (reply.complete || reply.rows.empty()) return {keys, skipped};
    page.after = reply.rows.back().row_key;
  }
  ADD_FAILURE() << "the pages do not end";
  return {};
}

TEST(PageOf, ADamagedRowFailsThePageUnlessItMayBePassedOver) {
  for (const Table table : {Table::kRows, Table::kHints}) {
    MemoryEngine engine;
    std::vector<EngineWrite> writes;
    std::set<std::string> all;
    for (int i = 0; i < 200; ++i) {
      const std::string key = table == Table::kHints ? HintKey(i) : RowKey(i);
      writes.push_back({table, key, Bytes("v")});
      all.insert(key);
    }
    ASSERT_TRUE(engine.Apply(writes, Durability::kDisk, "").ok());
    const std::vector<std::string> in_order(all.begin(), all.end());
    // The first, one alone, two beside each other, the last.
    for (const size_t damaged : {0, 50, 100, 101, 199}) {
      engine.Corrupt(table, in_order[damaged]);
      all.erase(in_order[damaged]);
    }
    peer::FetchPage page = AllHints(7, true);
    if (table == Table::kRows) page = {RowKeyFloor(1, 0), RowKeyCeiling(1, UINT64_MAX), 7, 1 << 20, true};
    EXPECT_EQ(ReadAll(engine, page), std::pair(all, true));
    page.skip_damage = false;
    EXPECT_EQ(PageOf(engine, page).code, absl::StatusCode::kDataLoss);
  }
}

TEST(PageOf, NothingIsPassedOverOfWhatIsWhole) {
  MemoryEngine engine;
  EXPECT_EQ(ReadAll(engine, AllHints(7, true)), std::pair(std::set<std::string>(), false));
  const EngineWrite write = {Table::kHints, HintKey(1), Bytes("v")};
  ASSERT_TRUE(engine.Apply({&write, 1}, Durability::kDisk, "").ok());
  EXPECT_EQ(ReadAll(engine, AllHints(7, true)), std::pair(std::set<std::string>{HintKey(1)}, false));
}

// Of basho/riak_core#1010: a block of a table file is rotten; all hints outside of it come out.
TEST(PageOf, Case44_ARottenBlockOfATableCostsNoMoreThanItsHints) {
  RocksWorld world({.cache_bytes = 1 << 20, .write_buffer_bytes = 256 << 10, .log_bytes_max = 64 << 20});
  constexpr int kHints = 3000;
  for (int i = 0; i < kHints; ++i) {
    const EngineWrite write = {Table::kHints, HintKey(i), Bytes(std::string(500, 'v'))};
    ASSERT_TRUE(world.engine().Apply({&write, 1}, Durability::kMemory, "").ok());
  }
  world.Reopen();
  world.Close();
  fs::path table;
  for (const fs::directory_entry& entry : fs::directory_iterator(world.path())) {
    if (entry.path().extension() != ".sst") continue;
    if (table.empty() || entry.file_size() > fs::file_size(table)) table = entry.path();
  }
  ASSERT_FALSE(table.empty());
  std::fstream file(table, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(fs::file_size(table) / 3));
  file.put('\x55').put('\xaa').put('\x55');
  file.close();
  world.Reopen();
  EXPECT_EQ(PageOf(world.engine(), AllHints(10'000, false)).code, absl::StatusCode::kDataLoss);
  const auto [keys, skipped] = ReadAll(world.engine(), AllHints(128, true));
  EXPECT_TRUE(skipped);
  EXPECT_LT(keys.size(), static_cast<size_t>(kHints));
  EXPECT_GE(keys.size(), static_cast<size_t>(kHints) - 100) << "a block holds a few only";
}

}  // namespace
}  // namespace gyre
