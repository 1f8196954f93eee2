// Hinted handoff: who is owed a hint, how it is kept, and when it goes.
#include "server/core/handoff.h"

#include "tests/server/core/driven_node.h"

namespace gyre {
namespace {

const PutCall kPut = {.key = "k", .value = "v", .write_id = {1, 2}};

struct HandoffTest : NodeTest {
  static std::string HintKeyOf(NodeId node) { return MakeHintKey(node.value, RowKeyOf("k")); }
  RecordBytes HintFor(NodeId node) { return disk[HintKeyOf(node)]; }
  uint64_t Held(NodeId node) const {
    const auto& hints = node_hints();
    const auto found = hints.find(node);
    return found == hints.end() ? 0 : found->second.hints;
  }
  const std::map<NodeId, HintCount>& node_hints() const { return node->replica().hints(); }

  // A put that B confirms; C is left to the test.
  OpId PutOnAAndB() {
    Sent();
    Call(kPut);
    const OpId op = sent.at(0).message.op;
    Commit();
    Answer(kB, op, peer::StoreReply{});
    EXPECT_TRUE(Reply().status.ok());
    return op;
  }
  void MissC() {
    Step(PeerDown{kC});
    PutOnAAndB();
    Commit();
    ASSERT_EQ(Held(kC), 1u);
    Sent();
  }
  // The store of a delivery to C.
  Outbox::Send Delivery() {
    for (Outbox::Send& send : Sent()) {
      if (send.to == kC && KindOf(send.message.op) == OpKind::kHandoff) return send;
    }
    ADD_FAILURE() << "nothing was delivered";
    return {};
  }
};

TEST_F(HandoffTest, WhoConfirmsIsOwedNothing) {
  const OpId op = PutOnAAndB();
  Answer(kC, op, peer::StoreReply{});
  Commit();
  EXPECT_TRUE(node_hints().empty());
  EXPECT_EQ(node->calls_in_flight(), 0u);
}

TEST_F(HandoffTest, WhoIsDownIsOwedAHint) {
  Step(PeerDown{kC});
  Call(kPut);
  ASSERT_EQ(out.commits.size(), 1u) << "only the row: who has not answered yet may still confirm";
  Commit();
  Answer(kB, Sent().at(0).message.op, peer::StoreReply{});
  Commit();
  EXPECT_EQ(Held(kC), 1u);
  EXPECT_TRUE(IsEmptyRecord(HintFor(kC))) << "it stands for the replica's own row";
}

TEST_F(HandoffTest, WhoRefusesIsOwedAHint) {
  const OpId op = PutOnAAndB();
  Answer(kC, op, peer::StoreReply{absl::StatusCode::kResourceExhausted});
  Commit();
  EXPECT_EQ(Held(kC), 1u);
}

TEST_F(HandoffTest, WhoIsSilentUntilTheDeadlineIsOwedAHint) {
  PutOnAAndB();
  EXPECT_EQ(node->calls_in_flight(), 0u) << "what was replied to is no call any more";
  TickAfter(Seconds(2));
  Commit();
  EXPECT_EQ(Held(kC), 1u);
}

TEST_F(HandoffTest, WhoseLinkBreaksIsOwedAHint) {
  PutOnAAndB();
  Step(PeerDown{kC});
  Commit();
  EXPECT_EQ(Held(kC), 1u);
}

TEST_F(HandoffTest, AWriteWithoutItsQuorumLeavesHintsToo) {
  Call(kPut);
  Commit();
  Step(PeerDown{kB});
  Step(PeerDown{kC});
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kUnknown);
  Commit();
  EXPECT_EQ(Held(kB) + Held(kC), 2u);
}

TEST_F(HandoffTest, ADrainSettlesWhatStillWaits) {
  PutOnAAndB();
  Step(Drain{});
  Commit();
  EXPECT_EQ(Held(kC), 1u);
}

TEST_F(HandoffTest, HintsAreBoundedByKeys) {
  Step(PeerDown{kC});
  for (int i = 0; i < 5; ++i) {
    PutOnAAndB();
    Commit();
  }
  EXPECT_EQ(Held(kC), 1u);
}

TEST_F(HandoffTest, AHintIsDeliveredAndErasedWhenTheTargetIsUp) {
  MissC();
  Step(PeerUp{kC});
  TickAfter(Millis(1));
  const Outbox::Send delivery = Delivery();
  EXPECT_EQ(*std::get<peer::StoreRow>(delivery.message.body).record, *disk[RowKeyOf("k")]);
  EXPECT_FALSE(std::get<peer::StoreRow>(delivery.message.body).hint_for);
  Answer(kC, delivery.message.op, peer::StoreReply{});
  Commit();
  EXPECT_EQ(HintFor(kC), nullptr);
  EXPECT_TRUE(node_hints().empty());
  EXPECT_EQ(node->replica().hints_delivered().at(kC), 1u);
}

TEST_F(HandoffTest, AHintWhoseRowChangedSinceItWasSentStays) {
  MissC();
  Step(PeerUp{kC});
  TickAfter(Millis(1));
  const Outbox::Send delivery = Delivery();
  Call(PutCall{.key = "k", .value = "newer", .write_id = {3, 4}});
  Answer(kC, delivery.message.op, peer::StoreReply{});
  Commit();
  EXPECT_EQ(Held(kC), 1u);
  TickAfter(Seconds(1));
  EXPECT_EQ(*std::get<peer::StoreRow>(Delivery().message.body).record, *disk[RowKeyOf("k")])
      << "the next pass";
}

TEST_F(HandoffTest, ATargetThatRefusesKeepsItsHint) {
  MissC();
  Step(PeerUp{kC});
  TickAfter(Millis(1));
  Answer(kC, Delivery().message.op, peer::StoreReply{absl::StatusCode::kResourceExhausted});
  Commit();
  EXPECT_EQ(Held(kC), 1u);
  EXPECT_NE(HintFor(kC), nullptr);
}

TEST_F(HandoffTest, HintsOfAnEarlierLifeAreCountedAndDelivered) {
  MissC();
  Restart(std::nullopt);
  EXPECT_EQ(Held(kC), 1u);
  TickAfter(Millis(1));
  EXPECT_EQ(std::get<peer::StoreRow>(Delivery().message.body).row_key, RowKeyOf("k"));
}

TEST_F(HandoffTest, AFallbackAnswersReadsWithWhatItHoldsAndElseThatItHoldsNothing) {
  const RecordBytes record = Encoded(RecordOf("v", kB, 7));
  Answer(kB, 5, peer::StoreRow{.row_key = RowKeyOf("k"), .record = record, .hint_for = kC});
  Commit();
  EXPECT_EQ(*HintFor(kC), *record);
  EXPECT_EQ(disk[RowKeyOf("k")], nullptr) << "it is no row of this node";
  Sent();
  Answer(kB, 6, peer::FetchRow{RowKeyOf("k"), kC});
  EXPECT_EQ(*std::get<peer::FetchReply>(Sent().at(0).message.body).record, *record);
  Answer(kC, 7, peer::FetchRow{RowKeyOf("k"), kB});
  EXPECT_EQ(std::get<peer::FetchReply>(Sent().at(0).message.body).code, absl::StatusCode::kNotFound);
}

TEST_F(HandoffTest, AHintForThisNodeOrAStrangerIsRefused) {
  const RecordBytes record = Encoded(RecordOf("v", kB, 7));
  for (const NodeId node : {kA, NodeId{99}}) {
    Answer(kB, 5, peer::StoreRow{.row_key = RowKeyOf("k"), .record = record, .hint_for = node});
    EXPECT_EQ(std::get<peer::StoreReply>(Sent().at(0).message.body).code, absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(HandoffTest, ARecordOfWhichNothingWasSeenMakesNoRow) {
  Answer(kB, 5, peer::StoreRow{.row_key = RowKeyOf("k"), .record = EmptyRecord()});
  EXPECT_EQ(std::get<peer::StoreReply>(Sent().at(0).message.body).code, absl::StatusCode::kOk);
  EXPECT_TRUE(out.commits.empty());
}

TEST_F(HandoffTest, OverTheLimitNewHintsAreRefusedAndCounted) {
  limits.hint_bytes = 0;
  Restart(std::nullopt);
  Answer(kB, 5,
         peer::StoreRow{.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("v", kB, 7)), .hint_for = kC});
  EXPECT_EQ(std::get<peer::StoreReply>(Sent().at(0).message.body).code, absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(node->replica().hints_refused(), 1u);
  EXPECT_TRUE(node_hints().empty());
}

TEST_F(HandoffTest, WhatIsOnItsWayToDiskAndWhatGrowsCountTowardTheLimit) {
  const RecordBytes record = Encoded(RecordOf(std::string(100, 'v'), kB, 7));
  limits.hint_bytes = 200;
  Restart(std::nullopt);
  Answer(kB, 5, peer::StoreRow{.row_key = RowKeyOf("k"), .record = record, .hint_for = kC});
  ASSERT_EQ(out.commits.size(), 1u);
  Answer(kB, 6, peer::StoreRow{.row_key = RowKeyOf("other"), .record = record, .hint_for = kC});
  EXPECT_EQ(std::get<peer::StoreReply>(Sent().at(0).message.body).code, absl::StatusCode::kResourceExhausted);
  Commit();
  Sent();
  const RecordBytes larger = Encoded(RecordOf(std::string(200, 'v'), kB, 8));
  Answer(kB, 7, peer::StoreRow{.row_key = RowKeyOf("k"), .record = larger, .hint_for = kC});
  EXPECT_EQ(std::get<peer::StoreReply>(Sent().at(0).message.body).code, absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(*HintFor(kC), *record);
  const RecordBytes smaller = Encoded(RecordOf("v", kB, 9));
  Answer(kB, 8, peer::StoreRow{.row_key = RowKeyOf("k"), .record = smaller, .hint_for = kC});
  Commit();
  EXPECT_EQ(*HintFor(kC), *smaller) << "what shrinks always fits";
}

// A vector entry claims everything of an actor: who forgets some of its own may not go on under that name.
TEST_F(HandoffTest, AHintWithOwnDotsEndsTheActorWhenItGoes) {
  const Actor before = node->replica().clock().actor();
  Record record = RecordOf("v", kB, 7);
  record = Merge(record, [&] {
    Record own;
    ApplyPut(own, {.dot = {before, 9}, .value = "mine"}, nullptr);
    return own;
  }());
  disk[HintKeyOf(kC)] = Encoded(record);
  Restart(std::nullopt);
  ASSERT_EQ(node->replica().clock().actor(), before);
  ASSERT_FALSE(node->replica().clock().retire_pending());
  TickAfter(Millis(1));
  Answer(kC, Delivery().message.op, peer::StoreReply{});
  Commit();
  EXPECT_EQ(HintFor(kC), nullptr);
  EXPECT_TRUE(node->replica().clock().retire_pending());
}

TEST_F(HandoffTest, WhoWaitsIsToldWhenAllOfNowIsDelivered) {
  MissC();
  Step(AwaitHints{{77}, now.steady + Seconds(60)});
  Step(PeerUp{kC});
  TickAfter(Millis(1));
  EXPECT_TRUE(out.replies.empty());
  Answer(kC, Delivery().message.op, peer::StoreReply{});
  Commit();
  TickAfter(Millis(1));
  ASSERT_EQ(out.replies.size(), 1u);
  EXPECT_EQ(out.replies[0].ticket.value, 77u);
}

TEST_F(HandoffTest, WhileAMemberIsAwayItIsNotKnownThatAllIsDelivered) {
  Step(PeerDown{kC});
  Step(AwaitHints{{77}, now.steady + Seconds(60)});
  TickAfter(Millis(1));
  EXPECT_TRUE(out.replies.empty()) << "it may hold some";
  Step(PeerUp{kC});
  TickAfter(Millis(1));
  EXPECT_EQ(out.replies.size(), 1u);
}

}  // namespace
}  // namespace gyre
