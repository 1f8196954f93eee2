// What a gather makes of the answers of replicas, and to whom it owes a repair.
#include "server/core/gather.h"

#include <gtest/gtest.h>

#include "tests/server/core/turns.h"

namespace gyre {
namespace {

constexpr OpId kOp = 7;
constexpr auto kRule = ConflictRule::kSiblings;

struct GatherTest : testing::Test, TurnOfA {
  Gather Of(int need) {
    Gather gather(SetOf(*view, 3), need, "row");
    gather.Start(turn, kOp);
    return gather;
  }
  Verdict Answer(Gather& gather, NodeId from, const RecordBytes& record) {
    return gather.Answer(turn, kOp, from, {.record = record});
  }
};
using Nodes = std::vector<NodeId>;

TEST_F(GatherTest, MergesWhatReplicasSaid) {
  Gather gather = Of(2);
  ASSERT_EQ(out.sends.size(), 2u);
  EXPECT_EQ(out.sends[0].message.op, kOp);
  EXPECT_EQ(std::get<peer::FetchRow>(out.sends[0].message.body).row_key, "row");
  const RecordBytes old = Encoded(RecordOf("old", kA, 1));
  Record both = RecordOf("old", kA, 1);
  ApplyPut(both, {.dot = {{kB.value, 1}, 2}, .value = "new"}, nullptr);
  const RecordBytes young = Encoded(both);
  EXPECT_EQ(Answer(gather, kA, old), Verdict::kPending);
  EXPECT_EQ(Answer(gather, kB, young), Verdict::kMet);
  const RecordBytes merged = gather.Merged(kRule)->record;
  EXPECT_EQ(merged, young) << "the bytes of the answer itself";
  EXPECT_EQ(gather.Stale(merged), Nodes{kA});
}

TEST_F(GatherTest, NoRowAnywhereIsNotARow) {
  Gather gather = Of(2);
  Answer(gather, kA, nullptr);
  EXPECT_EQ(Answer(gather, kB, nullptr), Verdict::kMet);
  EXPECT_EQ(gather.Merged(kRule)->record, nullptr);
  EXPECT_EQ(gather.Stale(nullptr), Nodes{});
}

TEST_F(GatherTest, WhoHasNoRowIsOwedOne) {
  Gather gather = Of(2);
  const RecordBytes record = Encoded(RecordOf("v", kA, 1));
  Answer(gather, kA, nullptr);
  Answer(gather, kB, record);
  EXPECT_EQ(gather.Merged(kRule)->record, record);
  EXPECT_EQ(gather.Stale(record), Nodes{kA});
}

TEST_F(GatherTest, AnErrorIsNotAnAnswer) {
  Gather gather = Of(2);
  Asked();
  EXPECT_EQ(gather.Answer(turn, kOp, kB, {.code = absl::StatusCode::kDataLoss}), Verdict::kPending);
  EXPECT_EQ(Asked(), Nodes{kC});
  const RecordBytes record = Encoded(RecordOf("v", kA, 1));
  Answer(gather, kA, record);
  EXPECT_EQ(Answer(gather, kC, record), Verdict::kMet);
  EXPECT_EQ(gather.Stale(record), Nodes{}) << "who could not read is not told what to hold";
}

TEST_F(GatherTest, AnswersCountOnceAndOnlyOfWhoWasAsked) {
  Gather gather = Of(2);
  const RecordBytes record = Encoded(RecordOf("v", kA, 1));
  EXPECT_EQ(Answer(gather, kC, record), Verdict::kPending);
  EXPECT_EQ(Answer(gather, kA, nullptr), Verdict::kPending);
  EXPECT_EQ(Answer(gather, kA, record), Verdict::kPending);
  EXPECT_EQ(gather.Merged(kRule)->record, nullptr);
}

TEST_F(GatherTest, ALateAnswerStillCountsTowardTheRepair) {
  Gather gather = Of(1);
  gather.AskNext(turn, kOp);
  const RecordBytes record = Encoded(RecordOf("v", kA, 1));
  EXPECT_EQ(Answer(gather, kA, nullptr), Verdict::kMet);
  EXPECT_TRUE(gather.fanout().waiting());
  EXPECT_EQ(Answer(gather, kB, record), Verdict::kMet);
  EXPECT_EQ(gather.Stale(gather.Merged(kRule)->record), Nodes{kA});
}

TEST_F(GatherTest, BytesThatAreNoRecordAreAnError) {
  Gather gather = Of(2);
  Answer(gather, kA, Encoded(RecordOf("v", kA, 1)));
  Answer(gather, kB, std::make_shared<const std::string>("rubbish"));
  EXPECT_EQ(gather.Merged(kRule).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace gyre
