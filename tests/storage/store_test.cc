// A store's sums equal a recount of its rows, after any commits, and after any restart they do or are in
// doubt.
#include "storage/store.h"

#include <gtest/gtest.h>

#include "tests/storage/worlds.h"

namespace gyre {
namespace {

constexpr uint32_t kKeyspaces = 3;
const absl::Status kRefused = absl::UnavailableError("the disk refuses");

using FailedBatch = MemoryEngine::FailedBatch;
using CrashKind = MemoryEngine::CrashKind;

class StoreTest : public testing::Test {
 protected:
  StoreTest() : store_(std::make_unique<Store>(engine_)) {}

  absl::Status Commit(size_t rows_max = 20, Durability durability = Durability::kDisk) {
    const std::vector<RowWrite> writes = rows_.Writes(*store_, rows_max);
    return store_->Commit(writes, {}, durability);
  }
  void CommitMany(int commits) {
    for (int i = 0; i < commits; ++i) ASSERT_TRUE(Commit().ok());
  }
  void Restart(CrashKind kind) {
    store_.reset();
    engine_.Crash(kind);
    store_ = std::make_unique<Store>(engine_);
  }
  // One row, committed.
  absl::Status Put(uint64_t token, const std::string& value) {
    const std::string key = MakeRowKey(0, token, "k");
    const RecordBytes before = *store_->ReadRows({&key, 1})[0];
    const RowWrite write{key, before, Bytes(value)};
    return store_->Commit({&write, 1}, {}, Durability::kDisk);
  }
  size_t InDoubt() { return ExpectExactOrInDoubt(*store_, kKeyspaces); }

  MemoryEngine engine_;
  RowMaker rows_{7, kKeyspaces};
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, AnEmptyStoreSumsToNothing) {
  EXPECT_EQ(*store_->SumOfRange(0, 0, 0), RowHash{});
  EXPECT_EQ(store_->Tree(0), nullptr);
  EXPECT_FALSE(store_->InDoubt(0));
  EXPECT_FALSE(store_->RecountSome(1));
  EXPECT_TRUE(store_->SaveSums().ok());
}

TEST_F(StoreTest, SumsFollowEveryCommit) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Commit().ok());
    ASSERT_EQ(InDoubt(), 0u);
  }
}

TEST_F(StoreTest, ChangesOfOneRowInOneCommitTelescope) {
  const std::string key = MakeRowKey(0, 1, "k");
  const RecordBytes one = Bytes("one"), two = Bytes("two");
  const RowWrite writes[] = {{key, nullptr, one}, {key, one, two}, {key, two, nullptr}, {key, nullptr, two}};
  ASSERT_TRUE(store_->Commit(writes, {}, Durability::kDisk).ok());
  EXPECT_EQ(*store_->SumOfRange(0, 0, 0), HashRow(key, "two"));
  EXPECT_EQ(**store_->ReadRows({&key, 1})[0], "two");
}

TEST_F(StoreTest, ReadRowsTellsAbsentFromUnreadable) {
  ASSERT_TRUE(Put(1, "one").ok());
  ASSERT_TRUE(Put(2, "two").ok());
  engine_.Corrupt(Table::kRows, MakeRowKey(0, 2, "k"));
  const std::vector<std::string> keys = {MakeRowKey(0, 3, "k"), MakeRowKey(0, 2, "k"), MakeRowKey(0, 1, "k")};
  const auto rows = store_->ReadRows(keys);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(*rows[0], nullptr);
  EXPECT_TRUE(absl::IsDataLoss(rows[1].status()));
  EXPECT_EQ(**rows[2], "one");
}

TEST_F(StoreTest, OtherWritesShareTheBatch) {
  const RowWrite row{MakeRowKey(0, 1, "k"), nullptr, Bytes("one")};
  const EngineWrite hint{Table::kHints, "hint", Bytes("h")};
  ASSERT_TRUE(store_->Commit({&row, 1}, {&hint, 1}, Durability::kDisk).ok());
  EXPECT_EQ(*engine_.Get(Table::kHints, "hint"), "h");
  ASSERT_TRUE(store_->Commit({}, {&hint, 1}, Durability::kDisk).ok());
  ASSERT_TRUE(store_->Commit({}, {}, Durability::kDisk).ok());
  Restart(CrashKind::kPower);
  EXPECT_EQ(InDoubt(), 0u);
}

TEST_F(StoreTest, ARestartBringsBackExactSums) {
  CommitMany(20);
  Restart(CrashKind::kProcess);
  EXPECT_EQ(InDoubt(), 0u) << "from notes alone";
  CommitMany(20);
  ASSERT_TRUE(store_->SaveSums().ok());
  EXPECT_EQ(store_->bytes_since_save(), 0u);
  Restart(CrashKind::kPower);
  EXPECT_EQ(InDoubt(), 0u) << "from a snapshot alone";
  CommitMany(20);
  EXPECT_GT(store_->bytes_since_save(), 0u);
  Restart(CrashKind::kPower);
  EXPECT_EQ(InDoubt(), 0u) << "from a snapshot and notes";
}

TEST_F(StoreTest, LossOfPowerTakesRowsAndSumsAlike) {
  CommitMany(10);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Commit(20, Durability::kMemory).ok());
  Restart(CrashKind::kPower);
  EXPECT_EQ(InDoubt(), 0u);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Commit(20, Durability::kMemory).ok());
  ASSERT_TRUE(store_->SaveSums().ok());
  Restart(CrashKind::kPower);
  EXPECT_EQ(InDoubt(), 0u);
}

TEST_F(StoreTest, AfterAGapInTheLogAllIsInDoubtUntilRecounted) {
  CommitMany(10);
  ASSERT_TRUE(store_->SaveSums().ok());
  CommitMany(10);
  engine_.LoseLog();
  Restart(CrashKind::kProcess);
  EXPECT_EQ(InDoubt(), size_t{kKeyspaces} * kMerkleLeaves);
  EXPECT_TRUE(absl::IsUnavailable(store_->SumOfRange(0, 0, 0).status()));

  // Commits and recounts take turns.
  bool more = true;
  for (int step = 0; more && step < 10'000; ++step) {
    more = store_->RecountSome(5);
    if (step < 20) {
      ASSERT_TRUE(Commit().ok());
    }
  }
  EXPECT_FALSE(more);
  EXPECT_EQ(InDoubt(), 0u);
  ASSERT_TRUE(store_->SaveSums().ok());
  CommitMany(3);
  Restart(CrashKind::kPower);
  EXPECT_EQ(InDoubt(), 0u);
}

TEST_F(StoreTest, AGarbledOrLostSnapshotPutsItsKeyspaceInDoubt) {
  CommitMany(10);
  ASSERT_TRUE(store_->SaveSums().ok());
  const EngineWrite changes[] = {{Table::kMeta, "sums/00000000", Bytes("garbage")},
                                 {Table::kMeta, "sums/00000001", nullptr},
                                 {Table::kMeta, "sums/nonsense", Bytes("garbage")}};
  ASSERT_TRUE(engine_.Apply(changes, Durability::kDisk, {}).ok());
  Restart(CrashKind::kProcess);
  EXPECT_TRUE(store_->InDoubt(0));
  EXPECT_TRUE(store_->InDoubt(1));
  EXPECT_FALSE(store_->InDoubt(2));
  CommitMany(5);
  Restart(CrashKind::kProcess);
  EXPECT_EQ(InDoubt(), 2 * size_t{kMerkleLeaves});
  RecountAll(*store_);
  EXPECT_EQ(InDoubt(), 0u);
}

TEST_F(StoreTest, AGarbledNotePutsAllInDoubt) {
  CommitMany(3);
  const EngineWrite write{Table::kMeta, "x", Bytes("y")};
  ASSERT_TRUE(engine_.Apply({&write, 1}, Durability::kDisk, "no note of ours").ok());
  CommitMany(3);
  Restart(CrashKind::kProcess);
  EXPECT_EQ(InDoubt(), size_t{kKeyspaces} * kMerkleLeaves);
}

TEST_F(StoreTest, AnUnreadableTableOfSnapshotsOrRowsMeansDoubt) {
  CommitMany(10);
  ASSERT_TRUE(store_->SaveSums().ok());
  engine_.Corrupt(Table::kMeta, "sums/00000000");
  engine_.Corrupt(Table::kRows, Contents(engine_, Table::kRows).begin()->first);
  Restart(CrashKind::kProcess);
  for (uint32_t keyspace = 0; keyspace < kKeyspaces; ++keyspace) {
    EXPECT_TRUE(store_->InDoubt(keyspace));
    EXPECT_TRUE(absl::IsUnavailable(store_->SumOfRange(keyspace, 0, 0).status()));
  }
}

TEST_F(StoreTest, AFailedCommitChangesNothingAndPutsItsLeavesInDoubt) {
  ASSERT_TRUE(Put(1, "one").ok());
  engine_.FailNextWrite(kRefused);
  EXPECT_EQ(Put(1, "two"), kRefused);
  EXPECT_EQ(InDoubt(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(store_->SumOfRange(0, 0, 0).status()));
  RecountAll(*store_);
  EXPECT_EQ(InDoubt(), 0u);
  EXPECT_EQ(*store_->SumOfRange(0, 0, 0), HashRow(MakeRowKey(0, 1, "k"), "one"));
}

TEST_F(StoreTest, AFailedFirstCommitOfAKeyspaceIsNoTrap) {
  engine_.FailNextWrite(kRefused, FailedBatch::kInLog);
  EXPECT_EQ(Put(1, "one"), kRefused);
  ASSERT_TRUE(Put(uint64_t{9} << 48, "nine").ok());
  RecountAll(*store_);
  EXPECT_EQ(InDoubt(), 0u);
  Restart(CrashKind::kPower);
  EXPECT_EQ(InDoubt(), 1u);
  RecountAll(*store_);
  EXPECT_EQ(InDoubt(), 0u);
}

// The failed commit turns up in the log, before commits that did not know of it.
TEST_F(StoreTest, AFailedCommitThatTurnsUpAfterACrashIsDoubted) {
  for (const bool save : {false, true}) {
    ASSERT_TRUE(Put(1, "one").ok());
    engine_.FailNextWrite(kRefused, FailedBatch::kInLog);
    EXPECT_EQ(Put(1, save ? "two" : "three"), kRefused);
    RecountAll(*store_);
    if (save) {
      ASSERT_TRUE(store_->SaveSums().ok());
    }
    ASSERT_TRUE(Put(2, "another row of that leaf").ok());
    Restart(CrashKind::kPower);
    EXPECT_EQ(InDoubt(), 1u);
    RecountAll(*store_);
    EXPECT_EQ(InDoubt(), 0u);
  }
}

TEST_F(StoreTest, AFullDiskIsSurvived) {
  CommitMany(5);
  engine_.SetDiskFull(true);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(absl::IsResourceExhausted(Commit()));
  EXPECT_TRUE(absl::IsResourceExhausted(store_->SaveSums()));
  RecountAll(*store_);
  EXPECT_EQ(InDoubt(), 0u);
  engine_.SetDiskFull(false);
  CommitMany(5);
  EXPECT_EQ(InDoubt(), 0u);
}

TEST_F(StoreTest, VerifyFindsAndCorrectsWhatChangedBehindItsBack) {
  CommitMany(20);
  absl::StatusOr<Store::Verification> verified = store_->Verify();
  ASSERT_TRUE(verified.ok());
  EXPECT_EQ(verified->differences, 0u);
  EXPECT_EQ(verified->leaves, size_t{kKeyspaces} * kMerkleLeaves);
  EXPECT_EQ(verified->rows, engine_.EstimateSize().keys);

  const EngineWrite planted[] = {{Table::kRows, MakeRowKey(0, uint64_t{9} << 48, "planted"), Bytes("x")},
                                 {Table::kRows, MakeRowKey(77, 1, "planted"), Bytes("x")}};
  ASSERT_TRUE(engine_.Apply(planted, Durability::kDisk, {}).ok());
  verified = store_->Verify();
  ASSERT_TRUE(verified.ok());
  EXPECT_EQ(verified->differences, 2u);
  EXPECT_EQ(InDoubt(), 0u);
  EXPECT_EQ(*store_->SumOfRange(77, 0, 0), HashRow(planted[1].key, "x"));
  Restart(CrashKind::kPower);
  EXPECT_EQ(InDoubt(), 0u);
  EXPECT_EQ(store_->Verify()->differences, 0u);
}

TEST_F(StoreTest, ACorrectionThatCouldNotBeSavedIsDoubtedByTheNextLife) {
  ASSERT_TRUE(Put(1, "one").ok());
  const EngineWrite planted{Table::kRows, MakeRowKey(0, 2, "planted"), Bytes("x")};
  ASSERT_TRUE(engine_.Apply({&planted, 1}, Durability::kDisk, {}).ok());
  engine_.SetDiskFull(true);
  EXPECT_EQ(store_->Verify()->differences, 1u);
  EXPECT_EQ(InDoubt(), 0u);
  engine_.SetDiskFull(false);
  ASSERT_TRUE(Put(uint64_t{9} << 48, "nine").ok());
  Restart(CrashKind::kPower);
  EXPECT_EQ(InDoubt(), 1u);
}

TEST_F(StoreTest, AnUnreadableLeafStaysInDoubtAndHoldsUpNoOther) {
  for (uint64_t leaf = 0; leaf < 10; ++leaf) ASSERT_TRUE(Put(leaf << 48, "value").ok());
  engine_.LoseLog();
  Restart(CrashKind::kProcess);
  const std::string key = MakeRowKey(0, uint64_t{4} << 48, "k");
  engine_.Corrupt(Table::kRows, key);
  RecountAll(*store_);
  ASSERT_EQ(store_->Tree(0)->in_doubt().size(), 1u);
  EXPECT_TRUE(store_->Tree(0)->in_doubt().Contains(4));
  EXPECT_TRUE(absl::IsDataLoss(store_->Verify().status()));
  EXPECT_EQ(store_->Tree(0)->in_doubt().size(), 1u);

  // Repaired from a replica: the old bytes are not known, so the sum stays in doubt until it is recounted.
  const RowWrite repair{key, nullptr, Bytes("value")};
  ASSERT_TRUE(store_->Commit({&repair, 1}, {}, Durability::kDisk).ok());
  ASSERT_TRUE(store_->SaveSums().ok());
  RecountAll(*store_);
  EXPECT_EQ(InDoubt(), 0u);
}

TEST_F(StoreTest, SumOfRangeIsTheSumOfTheRowsInIt) {
  CommitMany(60);
  for (int i = 0; i < 300; ++i) {
    const uint32_t keyspace = static_cast<uint32_t>(rows_.Next(kKeyspaces));
    const auto token = [&] {
      switch (rows_.Next(4)) {
        case 0:
          return rows_.Next(8) << 48 | rows_.Next(4) << 40;  // on a row of a crowded leaf
        case 1:
          return (rows_.Next(kMerkleLeaves) << 48) - rows_.Next(2);  // around the edge of a leaf
        case 2:
          return rows_.Next(2) ? uint64_t{0} : UINT64_MAX;
        default:
          return rows_.Next(UINT64_MAX);
      }
    };
    const uint64_t begin = token();
    const uint64_t end = i % 10 == 0 ? begin : token();
    RowHash naive;
    for (const auto& [key, value] : Contents(engine_, Table::kRows)) {
      RowKeyParts parts;
      ASSERT_TRUE(ParseRowKey(key, parts));
      if (parts.keyspace != keyspace) continue;
      // How far clockwise: `begin` itself is the last token of its own range.
      const uint64_t distance = parts.token - begin - 1;
      if (begin == end || distance <= end - begin - 1) naive += HashRow(key, value);
    }
    EXPECT_EQ(ToString(*store_->SumOfRange(keyspace, begin, end)), ToString(naive)) << begin << " " << end;
  }
}

TEST_F(StoreTest, ADroppedKeyspaceIsForgotten) {
  CommitMany(20);
  ASSERT_TRUE(store_->SaveSums().ok());
  ASSERT_TRUE(store_->DropKeyspace(1).ok());
  EXPECT_EQ(store_->Tree(1), nullptr);
  EXPECT_EQ(*store_->SumOfRange(1, 0, 0), RowHash{});
  EXPECT_EQ(InDoubt(), 0u);
  CommitMany(3);
  Restart(CrashKind::kPower);
  EXPECT_EQ(InDoubt(), 0u);
  ASSERT_TRUE(store_->DropKeyspace(4711).ok());
}

TEST_F(StoreTest, ADropThatFailsHalfWayLeavesDoubt) {
  CommitMany(20);
  engine_.FailNextWrite(kRefused);
  EXPECT_EQ(store_->DropKeyspace(1), kRefused);
  EXPECT_EQ(InDoubt(), 0u) << "nothing was done yet";
  Restart(CrashKind::kPower);
  EXPECT_EQ(InDoubt(), 0u);
}

class StoreUnderFaults : public testing::TestWithParam<int> {};

// Whatever fails, crashes or is lost, a sum is exact or in doubt; and recounting ends all doubt.
TEST_P(StoreUnderFaults, SumsAreExactOrInDoubt) {
  MemoryEngine engine({.log_batches_max = 40});
  RowMaker rows(GetParam(), kKeyspaces);
  auto store = std::make_unique<Store>(engine);
  for (int step = 0; step < 100; ++step) {
    switch (rows.Next(16)) {
      case 0:
        ASSERT_TRUE(store->SaveSums().ok());
        break;
      case 1:
        store->RecountSome(1 + rows.Next(30));
        break;
      case 2:
      case 3: {
        engine.FailNextWrite(kRefused, rows.Next(2) ? FailedBatch::kInLog : FailedBatch::kGone);
        if (rows.Next(6) == 0) {
          ASSERT_EQ(store->SaveSums(), kRefused);
        } else if (rows.Next(6) == 0) {
          ASSERT_EQ(store->DropKeyspace(static_cast<uint32_t>(rows.Next(kKeyspaces))), kRefused);
        } else {
          // Some writes change nothing (a row put and erased again), and such a commit needs no note; but it
          // fails too.
          ASSERT_EQ(store->Commit(rows.Writes(*store, 5), {}, Durability::kDisk), kRefused);
        }
        break;
      }
      case 4: {
        store.reset();
        engine.Crash(rows.Next(2) ? CrashKind::kPower : CrashKind::kProcess);
        store = std::make_unique<Store>(engine);
        break;
      }
      case 5:
        if (rows.Next(8) == 0) {
          ASSERT_TRUE(store->DropKeyspace(static_cast<uint32_t>(rows.Next(kKeyspaces))).ok());
        }
        break;
      case 6:
        if (rows.Next(8) == 0) engine.LoseLog();
        break;
      default:
        ASSERT_TRUE(
            store->Commit(rows.Writes(*store, 5), {}, rows.Next(2) ? Durability::kDisk : Durability::kMemory)
                .ok());
    }
    if (step % 5 == 0) ExpectExactOrInDoubt(*store, kKeyspaces);
    ASSERT_FALSE(HasFailure()) << "step " << step;
  }
  RecountAll(*store);
  EXPECT_EQ(ExpectExactOrInDoubt(*store, kKeyspaces), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StoreUnderFaults, testing::Range(1, 41));

}  // namespace
}  // namespace gyre
