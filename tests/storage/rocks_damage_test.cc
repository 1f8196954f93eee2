// A damaged, torn, incomplete or busy data directory is told for what it is.
#include <gtest/gtest.h>

#include "tests/storage/rocks_world.h"
#include "tests/storage/rot.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

class RocksDamage : public testing::Test {
 protected:
  absl::Status Commit(int rows) {
    Store store(world_.engine());
    for (int i = 0; i < rows; ++i) {
      const RowWrite row{MakeRowKey(0, static_cast<uint64_t>(i) << 50, "k"), nullptr,
                         Bytes(std::string(500, 'v'))};
      if (absl::Status status = store.Commit({&row, 1}, {}, Durability::kDisk); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  absl::Status OpenStatus() { return RocksEngine::Open(world_.path()).status(); }

  RocksWorld world_{{.cache_bytes = 1 << 20, .write_buffer_bytes = 256 << 10, .log_bytes_max = 64 << 20}};
};

TEST_F(RocksDamage, ADirectoryInUseIsNamed) {
  const absl::Status status = OpenStatus();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(std::string(status.message())
                .find("the data directory " + world_.path() + " is in use by another process"),
            std::string::npos)
      << status;
}

TEST_F(RocksDamage, ATornEndOfTheLogIsWhatACrashLeaves) {
  ASSERT_TRUE(Commit(50).ok());
  world_.Close();
  const fs::path log = Largest(world_.path(), ".log");
  fs::resize_file(log, fs::file_size(log) - 300);
  world_.Reopen();
  EXPECT_EQ(Contents(world_.engine(), Table::kRows).size(), 49u);
  Store store(world_.engine());
  EXPECT_EQ(ExpectExactOrInDoubt(store, 1), 0u);
}

TEST_F(RocksDamage, DamageInTheMiddleOfTheLogIsNotSkipped) {
  ASSERT_TRUE(Commit(50).ok());
  world_.Close();
  const fs::path log = Largest(world_.path(), ".log");
  FlipByte(log, fs::file_size(log) / 2);
  const absl::Status status = OpenStatus();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(std::string(status.message()).find(world_.path()), std::string::npos) << status;
  FlipByte(log, fs::file_size(log) / 2);
  world_.Reopen();
  EXPECT_EQ(Contents(world_.engine(), Table::kRows).size(), 50u);
}

TEST_F(RocksDamage, ARottenTableGivesDataLossAndNoOtherBytes) {
  ASSERT_TRUE(Commit(400).ok());  // more than the buffers hold
  world_.Reopen();
  world_.Close();
  const fs::path table = Largest(world_.path(), ".sst");
  ASSERT_FALSE(table.empty());
  FlipByte(table, 100);  // in the first block of data
  world_.Reopen();
  int lost = 0;
  for (int i = 0; i < 400; ++i) {
    const auto value = world_.engine().Get(Table::kRows, MakeRowKey(0, static_cast<uint64_t>(i) << 50, "k"));
    lost += absl::IsDataLoss(value.status());
    EXPECT_TRUE(absl::IsDataLoss(value.status()) || *value == std::string(500, 'v')) << value.status();
  }
  EXPECT_GT(lost, 0);
  EXPECT_TRUE(absl::IsDataLoss(world_.engine().Scan(Table::kRows, {}, [](auto, auto) { return true; })));
}

TEST_F(RocksDamage, ALogThatLostItsBeginningIsAGap) {
  ASSERT_TRUE(Commit(400).ok());
  world_.Reopen();
  ASSERT_TRUE(fs::exists(fs::path(world_.path()) / "archive"));
  const uint64_t last = world_.engine().LastSequence();
  world_.Close();
  for (fs::path log; !(log = Largest(fs::path(world_.path()) / "archive", ".log")).empty();) fs::remove(log);
  world_.Reopen();
  EXPECT_EQ(world_.engine().LastSequence(), last);
  EXPECT_TRUE(absl::IsDataLoss(world_.engine().ReplayNotes(0, [](auto) {})));
  EXPECT_TRUE(world_.engine().ReplayNotes(last, [](auto) {}).ok());

  Store store(world_.engine());
  EXPECT_EQ(ExpectExactOrInDoubt(store, 1), kMerkleLeaves);
  RecountAll(store);
  EXPECT_EQ(ExpectExactOrInDoubt(store, 1), 0u);
  ASSERT_TRUE(store.SaveSums().ok());
}

class StoreOnRocks : public testing::TestWithParam<int> {};

TEST_P(StoreOnRocks, SumsSurviveEveryRestart) {
  RowMaker rows(GetParam(), 3);
  RocksWorld world({.cache_bytes = 1 << 20, .write_buffer_bytes = 256 << 10, .log_bytes_max = 64 << 20});
  for (int life = 0; life < 4; ++life) {
    Store store(world.engine());
    EXPECT_EQ(ExpectExactOrInDoubt(store, 3), 0u) << "life " << life;
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(store.Commit(rows.Writes(store, 20), {}, Durability::kMemory).ok());
      if (i == 10 * life) {
        ASSERT_TRUE(store.SaveSums().ok());
      }
    }
    if (life == 2) {
      ASSERT_TRUE(store.DropKeyspace(1).ok());
    }
    EXPECT_EQ(store.Verify()->differences, 0u);
    world.Reopen();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, StoreOnRocks, testing::Range(1, 4));

}  // namespace
}  // namespace gyre
