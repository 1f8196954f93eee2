// One page of a scan from several replicas: complete as far as the slowest got.
#include "server/core/scan_merge.h"

#include <gtest/gtest.h>

#include "tests/server/core/turns.h"

namespace gyre {
namespace {

constexpr OpId kOp = 7;

struct ScanMergeTest : testing::Test, TurnOfA {
  ScanMerge merge{SetOf(*view, 3), 2, {.after = "a", .end = "z", .rows_max = 10, .bytes_max = 1000}};
  ScanMergeTest() { merge.Start(turn, kOp); }
  static Row RowOf(const std::string& key, const std::string& value, NodeId node, uint64_t counter) {
    return {key, Encoded(RecordOf(value, node, counter))};
  }
  Verdict Answer(NodeId from, std::vector<Row> rows, bool complete) {
    return merge.Answer(turn, kOp, from, {.rows = std::move(rows), .complete = complete});
  }
  std::string Keys(const std::vector<Row>& rows) {
    std::string keys;
    for (const Row& row : rows) keys += row.row_key;
    return keys;
  }
};

TEST_F(ScanMergeTest, AllPagesWholeIsAllOfTheRange) {
  EXPECT_EQ(Asked(), (std::vector<NodeId>{kA, kB}));
  EXPECT_EQ(Answer(kA, {RowOf("b", "1", kA, 1), RowOf("d", "1", kA, 2)}, true), Verdict::kPending);
  EXPECT_EQ(Answer(kB, {RowOf("c", "1", kB, 1), RowOf("d", "2", kB, 2)}, true), Verdict::kMet);
  const ScanMerge::Merged merged = *merge.Take(ConflictRule::kSiblings);
  EXPECT_EQ(Keys(merged.rows), "bcd");
  EXPECT_EQ(merged.covered_to, "z");
  EXPECT_EQ(DecodeRecord(*merged.rows[2].record)->versions.size(), 2u);
}

TEST_F(ScanMergeTest, GoesOnlyAsFarAsTheSlowest) {
  Answer(kA, {RowOf("b", "1", kA, 1), RowOf("d", "1", kA, 2)}, true);
  Answer(kB, {RowOf("b", "1", kA, 1), RowOf("c", "1", kA, 3)}, false);
  const ScanMerge::Merged merged = *merge.Take(ConflictRule::kSiblings);
  EXPECT_EQ(Keys(merged.rows), "bc") << "of d not all is known";
  EXPECT_EQ(merged.covered_to, "c");
}

TEST_F(ScanMergeTest, NothingAnywhereIsComplete) {
  Answer(kA, {}, true);
  Answer(kB, {}, true);
  const ScanMerge::Merged merged = *merge.Take(ConflictRule::kSiblings);
  EXPECT_TRUE(merged.rows.empty());
  EXPECT_EQ(merged.covered_to, "z");
}

TEST_F(ScanMergeTest, AnErrorOrAPageWithoutProgressIsMadeUpForByAnother) {
  Asked();
  EXPECT_EQ(Answer(kA, {}, false), Verdict::kPending);
  EXPECT_EQ(Asked(), std::vector<NodeId>{kC});
  EXPECT_EQ(merge.Answer(turn, kOp, kB, {.code = absl::StatusCode::kDataLoss}), Verdict::kLost);
}

TEST_F(ScanMergeTest, RowsThatWereNotAskedForAreMadeUpForByAnother) {
  Asked();
  EXPECT_EQ(Answer(kA, {RowOf("a", "1", kA, 1)}, false), Verdict::kPending);
  EXPECT_EQ(Asked(), std::vector<NodeId>{kC});
  EXPECT_EQ(Answer(kB, {RowOf("b", "1", kA, 1), RowOf("z", "1", kA, 1)}, true), Verdict::kLost);
}

TEST_F(ScanMergeTest, BytesThatAreNoRecordAreAnError) {
  Answer(kA, {{"b", std::make_shared<const std::string>("rubbish")}}, true);
  Answer(kB, {RowOf("b", "1", kA, 1)}, true);
  EXPECT_EQ(merge.Take(ConflictRule::kSiblings).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace gyre
