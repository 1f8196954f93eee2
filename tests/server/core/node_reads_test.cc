// A node driven by hand: what a get sees, asks for and repairs.
#include <gtest/gtest.h>

#include "server/core/node.h"
#include "storage/format/context_codec.h"
#include "storage/format/row_key.h"
#include "tests/server/core/driven_node.h"

namespace gyre {
namespace {

const PutCall kPut = {.key = "k", .value = "v", .write_id = {1, 2}};

TEST_F(NodeTest, AReadSeesOnlyWhatIsDurable) {
  Put(kPut);
  Call({PutCall{.key = "k", .value = "next"}});
  Sent();
  Answer(kB, 9, peer::FetchRow{RowKeyOf("k")});
  const std::vector<Outbox::Send> answers = Sent();
  ASSERT_EQ(answers.size(), 1u);
  const auto& reply = std::get<peer::FetchReply>(answers[0].message.body);
  EXPECT_EQ(DecodeRecord(*reply.record)->versions.at(0).value, "v");
}

TEST_F(NodeTest, ARowThatCannotBeReadIsAnErrorAndNotAMissingRow) {
  Step(FromPeer{kB, {9}, {9, peer::FetchRow{RowKeyOf("k")}}});
  out.reads.clear();
  Step(RowRead{RowKeyOf("k"), absl::DataLossError("bad block")});
  Settle();
  EXPECT_EQ(std::get<peer::FetchReply>(Sent().at(0).message.body).code, absl::StatusCode::kDataLoss);
  Step(ClientCall{{++tickets}, kPut, now.steady + Seconds(1)});
  Step(RowRead{RowKeyOf("k"), absl::DataLossError("bad block")});
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(NodeTest, AGetMergesAndRepairsWhoWasStale) {
  disk[RowKeyOf("k")] = Encoded(RecordOf("v", kA, 4));
  Call(GetCall{.key = "k"});
  const Outbox::Send fetch = Sent().at(0);
  Answer(fetch.to, fetch.message.op, peer::FetchReply{});
  const CallResult result = Reply();
  const auto& get = std::get<GetResult>(result.result);
  ASSERT_EQ(get.values.size(), 1u);
  EXPECT_EQ(get.values[0].value, "v");
  const std::vector<Outbox::Send> repairs = Sent();
  ASSERT_EQ(repairs.size(), 1u);
  EXPECT_EQ(repairs[0].to, fetch.to);
  EXPECT_TRUE(std::get<peer::StoreRow>(repairs[0].message.body).repair);
}

TEST_F(NodeTest, AGetThatFindsNothingStillGivesAContext) {
  Call(GetCall{.key = "k"});
  AnswerFirst(peer::FetchReply{});
  const CallResult result = Reply();
  EXPECT_TRUE(std::get<GetResult>(result.result).values.empty());
  EXPECT_TRUE(DecodeContext(std::get<GetResult>(result.result).context, kDefault, "k").ok());
}

TEST_F(NodeTest, AGetWithAContextAsksOnUntilTheAnswerHasSeenIt) {
  const Record known = RecordOf("v", kB, 5);
  const std::string context = EncodeContext({.seen = known.seen}, kDefault, "k");
  Call(GetCall{.key = "k", .r = ReplicaCount{ReplicaCount::How::kOne}, .contexts = {context}});
  EXPECT_TRUE(out.replies.empty()) << "this node has not seen it";
  const Outbox::Send fetch = Sent().at(0);
  Answer(fetch.to, fetch.message.op, peer::FetchReply{.record = Encoded(known)});
  const CallResult result = Reply();
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(std::get<GetResult>(result.result).values.at(0).value, "v");
}

TEST_F(NodeTest, AGetWithAContextThatNobodyHasSeenIsUnavailable) {
  const std::string context = EncodeContext({.seen = RecordOf("v", kB, 5).seen}, kDefault, "k");
  Call(GetCall{.key = "k", .r = ReplicaCount{ReplicaCount::How::kOne}, .contexts = {context}});
  AnswerFirst(peer::FetchReply{});
  EXPECT_TRUE(out.replies.empty());
  AnswerFirst(peer::FetchReply{});
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kUnavailable);
  Call(GetCall{.key = "other", .contexts = {context}});
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kInvalidArgument) << "it is of another key";
  Call(GetCall{.key = "k", .contexts = std::vector<std::string>(GetCall::kContextsMax + 1, context)});
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(NodeTest, ALateFetchIsHedged) {
  Call(GetCall{.key = "k"});
  const Outbox::Send fetch = Sent().at(0);
  now.steady = *node->next_deadline();
  Tick();
  Settle();
  const std::vector<Outbox::Send> hedges = Sent();
  ASSERT_EQ(hedges.size(), 1u);
  EXPECT_NE(hedges[0].to, fetch.to);
  Answer(hedges[0].to, fetch.message.op, peer::FetchReply{});
  EXPECT_TRUE(Reply().status.ok());
}

}  // namespace
}  // namespace gyre
