// The faults of the memory engine are exactly what they say.
#include "storage/memory_engine.h"

#include <gtest/gtest.h>

#include "tests/storage/worlds.h"

namespace gyre {
namespace {

using FailedBatch = MemoryEngine::FailedBatch;
using CrashKind = MemoryEngine::CrashKind;
using Map = std::map<std::string, std::string>;

const absl::Status kRefused = absl::UnavailableError("the disk refuses");

class MemoryEngineTest : public testing::Test {
 protected:
  absl::Status Put(const std::string& key, const std::string& value,
                   Durability durability = Durability::kDisk) {
    const EngineWrite write{Table::kRows, key, Bytes(value)};
    return engine_.Apply({&write, 1}, durability, key + "=" + value);
  }
  Map Rows() { return Contents(engine_, Table::kRows); }
  std::vector<std::string> Notes(uint64_t sequence = 0) {
    std::vector<std::string> notes;
    EXPECT_TRUE(engine_.ReplayNotes(sequence, [&](std::string_view note) { notes.emplace_back(note); }).ok());
    return notes;
  }

  MemoryEngine engine_{{.log_batches_max = 100}};
};

TEST_F(MemoryEngineTest, LossOfPowerForgetsWhatWasNotSynced) {
  ASSERT_TRUE(Put("a", "1").ok());
  ASSERT_TRUE(Put("a", "2", Durability::kMemory).ok());
  ASSERT_TRUE(Put("b", "1", Durability::kMemory).ok());
  engine_.Crash(CrashKind::kProcess);
  EXPECT_EQ(Rows(), (Map{{"a", "2"}, {"b", "1"}}));
  ASSERT_TRUE(Put("c", "1", Durability::kMemory).ok());
  ASSERT_TRUE(
      engine_.EraseRange(Table::kRows, {.begin = "b", .end = "c"}).ok());  // synced, and all before it
  ASSERT_TRUE(Put("c", "2", Durability::kMemory).ok());
  engine_.Crash(CrashKind::kPower);
  EXPECT_EQ(Rows(), (Map{{"a", "2"}, {"c", "1"}}));
  EXPECT_EQ(Notes(), (std::vector<std::string>{"a=1", "a=2", "b=1", "c=1"}));
  ASSERT_TRUE(Put("d", "1", Durability::kMemory).ok());
  ASSERT_TRUE(engine_.Sync().ok());
  engine_.Crash(CrashKind::kPower);
  EXPECT_TRUE(Rows().contains("d"));
}

TEST_F(MemoryEngineTest, AFailedBatchIsGoneOrTurnsUpAtItsPlace) {
  ASSERT_TRUE(Put("a", "1").ok());
  engine_.FailNextWrite(kRefused);
  EXPECT_EQ(Put("a", "gone"), kRefused);
  engine_.FailNextWrite(kRefused, FailedBatch::kInLog);
  EXPECT_EQ(Put("b", "lurking"), kRefused);
  ASSERT_TRUE(Put("a", "2").ok());
  EXPECT_EQ(Rows(), (Map{{"a", "2"}}));
  EXPECT_EQ(Notes(), (std::vector<std::string>{"a=1", "a=2"}));
  engine_.Crash(CrashKind::kPower);
  EXPECT_EQ(Rows(), (Map{{"a", "2"}, {"b", "lurking"}}));
  EXPECT_EQ(Notes(), (std::vector<std::string>{"a=1", "b=lurking", "a=2"}));
}

TEST_F(MemoryEngineTest, ALurkingBatchHoldsWhatLiesBeforeIt) {
  ASSERT_TRUE(Put("a", "1", Durability::kMemory).ok());
  engine_.FailNextWrite(kRefused, FailedBatch::kInLog);
  EXPECT_EQ(Put("b", "lurking"), kRefused);
  ASSERT_TRUE(Put("c", "1", Durability::kMemory).ok());
  engine_.Crash(CrashKind::kPower);
  EXPECT_EQ(Rows(), (Map{{"a", "1"}, {"b", "lurking"}}));
}

TEST_F(MemoryEngineTest, AFullDiskRefusesWritesAndServesReads) {
  ASSERT_TRUE(Put("a", "1").ok());
  engine_.SetDiskFull(true);
  EXPECT_TRUE(absl::IsResourceExhausted(Put("a", "2")));
  EXPECT_TRUE(absl::IsResourceExhausted(engine_.EraseRange(Table::kRows, {})));
  EXPECT_TRUE(absl::IsResourceExhausted(engine_.Resume()));
  EXPECT_EQ(*engine_.Get(Table::kRows, "a"), "1");
  engine_.SetDiskFull(false);
  EXPECT_TRUE(engine_.Resume().ok());
  EXPECT_TRUE(Put("a", "2").ok());
}

TEST_F(MemoryEngineTest, ACorruptValueIsDataLossUntilOverwritten) {
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(Put(key, "1").ok());
  engine_.Corrupt(Table::kRows, "b");
  EXPECT_TRUE(absl::IsDataLoss(engine_.Get(Table::kRows, "b").status()));
  const std::vector<std::string> keys = {"a", "b"};
  EXPECT_TRUE(engine_.MultiGet(Table::kRows, keys)[0].ok());
  EXPECT_TRUE(absl::IsDataLoss(engine_.MultiGet(Table::kRows, keys)[1].status()));
  int visited = 0;
  const auto visit = [&](auto, auto) { return ++visited > 0; };
  EXPECT_TRUE(absl::IsDataLoss(engine_.Scan(Table::kRows, {}, visit)));
  EXPECT_EQ(visited, 1);
  engine_.Crash(CrashKind::kPower);
  EXPECT_TRUE(absl::IsDataLoss(engine_.Get(Table::kRows, "b").status()));
  ASSERT_TRUE(Put("b", "2").ok());
  EXPECT_EQ(*engine_.Get(Table::kRows, "b"), "2");
}

TEST_F(MemoryEngineTest, TheLogHasAGapWhenLostOrTooLong) {
  ASSERT_TRUE(Put("a", "1").ok());
  engine_.LoseLog();
  const uint64_t lost = engine_.LastSequence();
  ASSERT_TRUE(Put("a", "2").ok());
  EXPECT_TRUE(absl::IsDataLoss(engine_.ReplayNotes(0, [](auto) {})));
  EXPECT_EQ(Notes(lost), (std::vector<std::string>{"a=2"}));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Put("b", "1").ok());
  EXPECT_TRUE(absl::IsDataLoss(engine_.ReplayNotes(lost, [](auto) {})));
  EXPECT_EQ(Notes(lost + 1).size(), 100u);
}

}  // namespace
}  // namespace gyre
