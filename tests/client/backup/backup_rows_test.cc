// The rows of a backup: those of all nodes, merged as the nodes would have merged them.
#include <fstream>
#include <map>

#include "client/backup/merged_rows.h"
#include "tests/client/backup/backup_world.h"

namespace gyre::backup {
namespace {

using Values = std::vector<std::string>;
using Merged = std::map<std::string, Values>;  // by key; tombstones have no values

constexpr uint64_t kWholeRing = 0;  // begin == end

class RowsTest : public testing::Test {
 protected:
  RowsTest() : directory_(*Directory::Open((world_.path() / "backup").string(), true)) {}

  // A record in which actor `node` wrote `value` at `counter`, on top of `before`.
  static Record Put(uint64_t counter, const std::string& value, uint64_t node = 1, Record before = {}) {
    ApplyPut(before, {.dot = {{node, 1}, counter}, .value = value}, nullptr);
    return before;
  }
  static Record Delete(uint64_t counter, Record before) {
    ApplyDelete(before, {{9, 1}, counter}, {.seen = before.seen});
    return before;
  }
  using KeyRecords = std::map<std::string, Record>;  // the token of a key is its first byte
  Manifest::Chunk Chunk(const KeyRecords& records) {
    Rows rows;
    for (const auto& [key, record] : records) {
      rows.emplace_back(MakeRowKey(1, static_cast<uint8_t>(key[0]), key), EncodeRecord(record));
    }
    return WriteChunkOf(directory_, rows);
  }
  Manifest::Node Node(const std::string& id, uint64_t cut, const std::vector<KeyRecords>& chunks,
                      std::vector<BackupRange> complete = {{1, kWholeRing, kWholeRing}}) {
    Manifest::Node node = {.id = id, .stable_cut = cut, .complete = std::move(complete), .runs = {{}}};
    for (const KeyRecords& records : chunks) node.runs[0].chunks.push_back(Chunk(records));
    return node;
  }
  Merged ReadAll(const Manifest& manifest) {
    Merged all;
    MergedRows rows(directory_, manifest);
    MergedRow row;
    std::string last;
    for (;;) {
      const absl::StatusOr<bool> more = rows.Next(row);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) break;
      EXPECT_LT(last, row.row_key);
      last = row.row_key;
      Values& values = all[row.key];
      for (const Version& version : row.record.versions) values.push_back(version.value);
    }
    EXPECT_EQ(rows.rows_read(), TotalsOf(manifest).rows);
    return all;
  }

  const TemporaryDirectory world_;
  Directory directory_;
};

TEST_F(RowsTest, EqualReplicasAreOneKeyAndTheirChunksOneFile) {
  const KeyRecords records = {{"a", Put(1, "1")}, {"b", Put(2, "2")}};
  const Manifest manifest =
      ManifestOf({Node("n1", 0, {records}), Node("n2", 0, {records}), Node("n3", 0, {records})});
  EXPECT_EQ(TotalsOf(manifest).files, 1u);
  EXPECT_EQ(ReadAll(manifest), (Merged{{"a", {"1"}}, {"b", {"2"}}}));
}

TEST_F(RowsTest, TheNewerOfTwoReplicasAndTheSiblingsOfBothAreKept) {
  const Record old = Put(1, "old");
  const Manifest manifest = ManifestOf(
      {Node("n1", 0, {{{"a", old}, {"c", Put(5, "c1", 1)}}}),
       Node("n2", 0, {{{"a", Put(2, "new", 1, old)}}, {{"b", Put(3, "b")}, {"c", Put(6, "c2", 2)}}})});
  EXPECT_EQ(ReadAll(manifest), (Merged{{"a", {"new"}}, {"b", {"b"}}, {"c", {"c1", "c2"}}}));
}

TEST_F(RowsTest, ATombstoneOfOneReplicaCoversTheValueOfAnother) {
  const Record old = Put(1, "old");
  EXPECT_EQ(ReadAll(ManifestOf({Node("n1", 0, {{{"a", old}}}), Node("n2", 0, {{{"a", Delete(2, old)}}})})),
            (Merged{{"a", {}}}));
}

// The delete was collected on the one before its moment, and had not reached the other at its own.
TEST_F(RowsTest, Case1_ACollectedDeleteCoversTheValueOfAReplicaThatMissedIt) {
  const KeyRecords stale = {{"a", Put(5, "old")}, {"b", Put(20, "young")}};
  const Merged dropped = {{"a", {}}, {"b", {"young"}}};
  const Merged kept = {{"a", {"old"}}, {"b", {"young"}}};
  EXPECT_EQ(ReadAll(ManifestOf({Node("n1", 4, {stale}), Node("n2", 10, {})})), dropped);
  // One that is not complete there proves nothing, nor one whose cut is lower.
  EXPECT_EQ(ReadAll(ManifestOf({Node("n1", 4, {stale}), Node("n2", 10, {}, {})})), kept);
  EXPECT_EQ(ReadAll(ManifestOf({Node("n1", 4, {stale}), Node("n2", 4, {})})), kept);
  EXPECT_EQ(ReadAll(ManifestOf({Node("n1", 4, {stale}), Node("n2", 10, {}, {{1, 'a', 'z'}})})), kept);
  // (begin, end] holds its end and not its begin; one that wraps holds both ends of the ring.
  EXPECT_EQ(ReadAll(ManifestOf({Node("n1", 4, {stale}), Node("n2", 10, {}, {{1, 'a' - 1, 'a'}})})), dropped);
  EXPECT_EQ(ReadAll(ManifestOf({Node("n1", 4, {stale}), Node("n2", 10, {}, {{1, UINT64_MAX, 'a'}})})),
            dropped);
}

TEST_F(RowsTest, WhatOnlyAHintHoldsIsThere) {
  Manifest::Node holder = Node("n1", 0, {{{"b", Put(1, "b")}}});
  holder.runs.push_back({.hints_for = "n2", .chunks = {Chunk({{"a", Put(2, "a")}, {"b", Put(3, "b2", 2)}})}});
  EXPECT_EQ(ReadAll(ManifestOf({holder})), (Merged{{"a", {"a"}}, {"b", {"b", "b2"}}}));
}

TEST_F(RowsTest, RowsOfAKeyspaceThatTheManifestLacksAreLeftOut) {
  Manifest manifest = ManifestOf({Node("n1", 0, {{{"a", Put(1, "1")}}})});
  manifest.keyspaces[0].id = 2;
  EXPECT_EQ(ReadAll(manifest), Merged{});
}

TEST_F(RowsTest, ChunksOutOfOrderOrNotAsTheManifestSaysAreDamage) {
  const auto error = [&](const Manifest& manifest) {
    MergedRows rows(directory_, manifest);
    MergedRow row;
    for (;;) {
      const absl::StatusOr<bool> more = rows.Next(row);
      if (!more.ok()) return more.status();
      if (!*more) return absl::OkStatus();
    }
  };
  const Manifest good = ManifestOf({Node("n1", 0, {{{"a", Put(1, "1")}}, {{"b", Put(2, "2")}}})});
  EXPECT_TRUE(error(good).ok());
  EXPECT_TRUE(VerifyChunks(directory_, good, [](uint64_t) {}).ok());
  Manifest bad = good;
  std::swap(bad.nodes[0].runs[0].chunks[0], bad.nodes[0].runs[0].chunks[1]);
  EXPECT_TRUE(absl::IsDataLoss(error(bad)));
  bad = good;
  bad.nodes[0].runs[0].chunks[1].rows = 2;
  EXPECT_TRUE(absl::IsDataLoss(error(bad)));
  bad = good;
  bad.nodes[0].runs[0].chunks[1].bytes += 1;
  EXPECT_TRUE(absl::IsDataLoss(error(bad)));
  EXPECT_TRUE(absl::IsDataLoss(VerifyChunks(directory_, bad, [](uint64_t) {})));
  bad = good;
  bad.nodes[0].runs[0].chunks[1].name = Sha256Hex("nothing");
  EXPECT_TRUE(absl::IsDataLoss(error(bad)));
  const std::string& name = good.nodes[0].runs[0].chunks[1].name;
  std::ofstream(ChunkPath(directory_.path(), name), std::ios::app) << "x";
  const absl::Status damaged = VerifyChunks(directory_, good, [](uint64_t) {});
  EXPECT_TRUE(absl::IsDataLoss(damaged));
  EXPECT_NE(damaged.message().find(name), absl::string_view::npos) << damaged;
}

}  // namespace
}  // namespace gyre::backup
