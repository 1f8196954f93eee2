// Rows are counted exactly while they are few, closely while they are many, and kept by every commit.
#include "storage/row_census.h"

#include <gtest/gtest.h>

#include "tests/storage/worlds.h"

namespace gyre {
namespace {

class CensusTest : public testing::Test {
 protected:
  // Random tokens in [begin, end), each with a value of `bytes` at most.
  void Fill(size_t rows, size_t bytes, uint64_t begin = 0, uint64_t end = UINT64_MAX) {
    std::uniform_int_distribution<uint64_t> token(begin, end);
    std::uniform_int_distribution<size_t> size(0, bytes);
    std::vector<RowWrite> writes;
    for (size_t i = 0; i < rows; ++i) {
      writes.push_back({MakeRowKey(1, token(random_), std::to_string(serial_++)), nullptr,
                        Bytes(std::string(size(random_), 'v'))});
    }
    ASSERT_TRUE(store_->Commit(writes, {}, Durability::kDisk).ok());
  }
  void Restart() {
    ASSERT_TRUE(store_->SaveSums().ok());
    store_ = std::make_unique<Store>(engine_);
  }
  void Count() {
    while (store_->RecountSome(100)) {
    }
  }
  RowTotals Real() {
    RowTotals totals;
    for (const auto& [key, value] : Contents(engine_, Table::kRows)) {
      ++totals.rows;
      totals.bytes += key.size() + value.size();
    }
    return totals;
  }

  std::mt19937_64 random_{7};
  uint64_t serial_ = 0;
  MemoryEngine engine_;
  std::unique_ptr<Store> store_ = std::make_unique<Store>(engine_);
};

TEST_F(CensusTest, FollowsEveryCommit) {
  EXPECT_TRUE(store_->totals().empty());
  Fill(100, 50);
  EXPECT_EQ(store_->totals().at(1), Real());
  const auto some = Contents(engine_, Table::kRows);
  const std::string key = some.begin()->first;
  const RecordBytes was = Bytes(some.begin()->second), is = Bytes("another");
  const RowWrite writes[] = {{key, was, is}, {key, is, nullptr}, {key, nullptr, is}};
  ASSERT_TRUE(store_->Commit(writes, {}, Durability::kDisk).ok());
  EXPECT_EQ(store_->totals().at(1), Real());
  const RowWrite erase = {key, is, nullptr};
  ASSERT_TRUE(store_->Commit({&erase, 1}, {}, Durability::kDisk).ok());
  EXPECT_EQ(store_->totals().at(1).rows, 99u);
  engine_.FailNextWrite(absl::UnavailableError("no"), MemoryEngine::FailedBatch{});
  const RowWrite failing = {key, nullptr, is};
  EXPECT_FALSE(store_->Commit({&failing, 1}, {}, Durability::kDisk).ok());
  EXPECT_EQ(store_->totals().at(1), Real());
  ASSERT_TRUE(store_->DropKeyspace(1).ok());
  EXPECT_TRUE(store_->totals().empty());
}

TEST_F(CensusTest, CountsFewExactlyAfterARestart) {
  Fill(5000, 50);
  Restart();
  EXPECT_TRUE(store_->totals().empty()) << "not counted yet is not nothing";
  for (int i = 0; i < 5; ++i) {
    store_->RecountSome(100);
    Fill(300, 50);  // behind and before what is counted
  }
  Count();
  EXPECT_EQ(store_->totals().at(1), Real());
  Fill(300, 50);
  EXPECT_EQ(store_->totals().at(1), Real());
}

TEST_F(CensusTest, EstimatesMany) {
  // Two thirds of the ring in a few arcs, as a node holds it.
  for (uint64_t part = 0; part < 12; part += 3) {
    Fill(20'000, 300, part * (UINT64_MAX / 12), (part + 2) * (UINT64_MAX / 12));
  }
  Restart();
  Count();
  const RowTotals real = Real();
  const RowTotals counted = store_->totals().at(1);
  EXPECT_NEAR(static_cast<double>(counted.rows), static_cast<double>(real.rows), .03 * 80'000);
  EXPECT_NEAR(static_cast<double>(counted.bytes), static_cast<double>(real.bytes),
              .03 * static_cast<double>(real.bytes));
}

}  // namespace
}  // namespace gyre
