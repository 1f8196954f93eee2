// A node driven by hand: what it asks for at each step of a put and a delete, and when its actor ends.
#include "server/core/node.h"

#include <gtest/gtest.h>

#include "storage/format/context_codec.h"
#include "storage/format/row_key.h"
#include "tests/server/core/driven_node.h"

namespace gyre {
namespace {

const PutCall kPut = {.key = "k", .value = "v", .write_id = {1, 2}};

TEST_F(NodeTest, APutIsAcknowledgedWhenTwoOfThreeHaveIt) {
  Call(kPut);
  ASSERT_EQ(out.commits.size(), 1u);
  const std::vector<Outbox::Send> stores = Sent();
  ASSERT_EQ(stores.size(), 2u) << "at once, before it is durable here";
  EXPECT_EQ(std::get<peer::StoreRow>(stores[0].message.body).record, out.commits[0].after) << "encoded once";
  EXPECT_TRUE(out.replies.empty());
  Answer(kB, stores[0].message.op, peer::StoreReply{});
  EXPECT_TRUE(out.replies.empty()) << "B alone is not two";
  Commit();
  const CallResult result = Reply();
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(std::get<WriteResult>(result.result).acks, 2);
  EXPECT_EQ(result.layout_epoch, 1u);
  EXPECT_EQ(OnDisk("k").versions.at(0).value, "v");
  Answer(kC, stores[1].message.op, peer::StoreReply{});
  EXPECT_TRUE(out.replies.empty()) << "answered once";
  EXPECT_EQ(node->calls_in_flight(), 0u);
}

TEST_F(NodeTest, AnAnswerCountsOnceAndOnlyOfReplicas) {
  Call(kPut);
  const OpId op = Sent().at(0).message.op;
  Answer(kB, op, peer::StoreReply{});
  Answer(kB, op, peer::StoreReply{});
  Answer(NodeId{9}, op, peer::StoreReply{});
  Answer(kB, op + 1, peer::StoreReply{});
  EXPECT_TRUE(out.replies.empty());
}

TEST_F(NodeTest, TooManyRefusalsMakeTheOutcomeUnknown) {
  Call(kPut);
  const OpId op = Sent().at(0).message.op;
  Commit();
  Answer(kB, op, peer::StoreReply{absl::StatusCode::kResourceExhausted});
  Step(PeerDown{kC});
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kUnknown);
}

TEST_F(NodeTest, ADeadlineAfterTheStoresMakesTheOutcomeUnknown) {
  Call(kPut);
  now.steady = *node->next_deadline();
  Tick();
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kUnknown);
}

TEST_F(NodeTest, ADeadlineBeforeTheStoresIsARefusal) {
  Step(ClientCall{{++tickets}, kPut, now.steady + Seconds(1)});
  ASSERT_EQ(out.reads.size(), 1u) << "the row is being read";
  now.steady = now.steady + Seconds(1);
  Tick();
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kUnavailable);
  Settle();
  EXPECT_TRUE(out.commits.empty()) << "it is not begun any more";
}

TEST_F(NodeTest, TooFewReachableReplicasAreRefusedBeforeAnythingIsDone) {
  Step(PeerDown{kB});
  Step(PeerDown{kC});
  Call(kPut);
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(out.commits.empty());
}

TEST_F(NodeTest, ARetryIsAnsweredWithWhatTheFirstAttemptDid) {
  const std::string context = Put(kPut);
  const Record before = OnDisk("k");
  for (const bool marked : {false, true}) {
    PutCall again = kPut;
    again.retry = marked;
    Call(again);
    const std::vector<Outbox::Send> stores = Sent();
    ASSERT_EQ(stores.size(), 2u) << "the others may lack it";
    EXPECT_TRUE(std::holds_alternative<peer::StoreRow>(stores[0].message.body));
    Commit();
    Answer(kB, stores[0].message.op, peer::StoreReply{});
    EXPECT_EQ(std::get<WriteResult>(Reply().result).context, context);
    EXPECT_EQ(OnDisk("k"), before);
  }
}

TEST_F(NodeTest, AMarkedRetryThatIsNotKnownHereReadsAQuorumFirst) {
  PutCall again = kPut;
  again.retry = true;
  Call(again);
  std::vector<Outbox::Send> fetches = Sent();
  ASSERT_EQ(fetches.size(), 1u) << "itself and one more";
  ASSERT_TRUE(std::holds_alternative<peer::FetchRow>(fetches[0].message.body));
  Record known;
  ApplyPut(known, {.dot = {{kB.value, 1}, 5}, .write_id = kPut.write_id, .value = "v"}, nullptr);
  Answer(fetches[0].to, fetches[0].message.op, peer::FetchReply{.record = Encoded(known)});
  ASSERT_EQ(out.commits.size(), 1u);
  EXPECT_EQ(*DecodeRecord(*out.commits[0].after), known) << "the version that B made";
}

TEST_F(NodeTest, AMarkedRetryThatNobodyKnowsSupersedesNothing) {
  Put({.key = "k", .value = "other", .write_id = {7, 7}});
  PutCall again = kPut;
  again.retry = true;
  Call(again);
  AnswerFirst(peer::FetchReply{});
  ASSERT_EQ(out.commits.size(), 1u);
  const Record record = *DecodeRecord(*out.commits[0].after);
  ASSERT_EQ(record.versions.size(), 2u);
  EXPECT_TRUE(record.versions[1].retried);
}

TEST_F(NodeTest, ADeleteWithoutContextReadsAQuorumFirst) {
  Call(DeleteCall{.key = "k"});
  EXPECT_TRUE(out.commits.empty());
  const std::vector<Outbox::Send> fetches = Sent();
  ASSERT_EQ(fetches.size(), 1u);
  const Record known = RecordOf("v", kB, 5);
  Answer(fetches[0].to, fetches[0].message.op, peer::FetchReply{.record = Encoded(known)});
  ASSERT_EQ(out.commits.size(), 1u);
  const Record record = *DecodeRecord(*out.commits[0].after);
  EXPECT_TRUE(record.tombstone());
  EXPECT_TRUE(record.seen.Covers(known.seen));
}

TEST_F(NodeTest, ADeleteWithContextLeavesWhatItHasNotSeen) {
  const std::string context = Put(kPut);
  Put({.key = "k", .value = "sibling", .context = EncodeContext({}, kDefault, "k")});
  Call(DeleteCall{.key = "k", .context = context});
  ASSERT_EQ(out.commits.size(), 1u);
  const Record record = *DecodeRecord(*out.commits[0].after);
  ASSERT_EQ(record.versions.size(), 1u);
  EXPECT_EQ(record.versions[0].value, "sibling");
}

TEST_F(NodeTest, AContextWhoseOwnWriteIsNotKnownHereReadsAQuorum) {
  const Dot own = {{kB.value, 1}, 5};
  Call(PutCall{.key = "k",
               .value = "v2",
               .context = EncodeContext({.seen = {}, .has_own = true, .own = own}, kDefault, "k")});
  const std::vector<Outbox::Send> fetches = Sent();
  ASSERT_EQ(fetches.size(), 1u);
  Answer(fetches[0].to, fetches[0].message.op, peer::FetchReply{.record = Encoded(RecordOf("v1", kB, 5))});
  ASSERT_EQ(out.commits.size(), 1u);
  const Record record = *DecodeRecord(*out.commits[0].after);
  ASSERT_EQ(record.versions.size(), 1u);
  EXPECT_EQ(record.versions[0].value, "v2");
}

TEST_F(NodeTest, AContextWhoseOwnWriteNoQuorumKnowsLeavesItASibling) {
  const Dot own = {{kB.value, 1}, 5};
  Call(PutCall{.key = "k",
               .value = "v2",
               .context = EncodeContext({.seen = {}, .has_own = true, .own = own}, kDefault, "k")});
  AnswerFirst(peer::FetchReply{});
  ASSERT_EQ(out.commits.size(), 1u);
  EXPECT_FALSE(DecodeRecord(*out.commits[0].after)->seen.Covers(own));
}

TEST_F(NodeTest, AContextFromTheFutureThatNobodyKnowsIsRefused) {
  VersionVector seen;
  seen.Add({{kB.value, 1}, CounterOfMillis(kWallMs + 3'600'000)});
  Call(PutCall{.key = "k", .value = "v", .context = EncodeContext({.seen = seen}, kDefault, "k")});
  AnswerFirst(peer::FetchReply{});
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(out.commits.empty());
}

TEST_F(NodeTest, AMintBeyondTheDriftEndsItsActor) {
  const uint64_t far = CounterOfMillis(kWallMs + 3'600'000);
  disk[RowKeyOf("k")] = Encoded(RecordOf("far", kB, far));
  Call(kPut);
  ASSERT_EQ(out.commits.size(), 1u);
  EXPECT_EQ(DecodeRecord(*out.commits[0].after)->versions.at(0).dot, (Dot{{kA.value, 0}, far + 1}));
  ASSERT_TRUE(out.actor);
  EXPECT_EQ(out.actor->incarnation, 1u);
  Sent();
  Call({PutCall{.key = "other", .value = "v"}});
  EXPECT_EQ(out.commits.size(), 1u) << "waits for its new incarnation";
  Commit();
  ASSERT_EQ(out.commits.size(), 1u);
  const Dot dot = DecodeRecord(*out.commits[0].after)->versions.at(0).dot;
  EXPECT_EQ(dot.actor, (Actor{kA.value, 1}));
  EXPECT_EQ(MillisOfCounter(dot.counter), kWallMs) << "and goes on from the clock";
}

TEST_F(NodeTest, BeingShownAnOwnWriteThatItsRowLacksEndsItsActor) {
  Answer(kB, 5,
         peer::StoreRow{.row_key = RowKeyOf("k"),
                        .record = Encoded([] {
                          Record record;
                          ApplyPut(record, {.dot = {{kA.value, 0}, 9}, .value = "lost"}, nullptr);
                          return record;
                        }())});
  EXPECT_TRUE(node->replica().clock().retire_pending());
}

TEST_F(NodeTest, AQuorumReadOrAContextThatShowsAnOwnWriteEndsTheActorBeforeItMints) {
  const Dot lost = {{kA.value, 0}, 9};
  Record record;
  ApplyPut(record, {.dot = lost, .value = "lost"}, nullptr);
  Call(DeleteCall{.key = "k"});
  AnswerFirst(peer::FetchReply{.record = Encoded(record)});
  EXPECT_TRUE(out.commits.empty());
  Commit();
  ASSERT_EQ(out.commits.size(), 1u);
  EXPECT_EQ(DecodeRecord(*out.commits[0].after)->seen.CounterOf({kA.value, 0}), 9u);

  Restart(std::nullopt);
  Call(PutCall{.key = "k2", .value = "v", .context = EncodeContext({.seen = record.seen}, kDefault, "k2")});
  EXPECT_TRUE(out.commits.empty());
  Commit();
  ASSERT_EQ(out.commits.size(), 1u);
  EXPECT_EQ(DecodeRecord(*out.commits[0].after)->versions.at(0).dot.actor, (Actor{kA.value, 1}));
}

TEST_F(NodeTest, AFailedCommitSaysNoEndsTheActorAndForgetsTheRow) {
  Call(kPut);
  const OpId op = Sent().at(0).message.op;
  Commit(absl::UnavailableError("input/output error"));
  EXPECT_TRUE(node->replica().clock().retire_pending());
  Answer(kB, op, peer::StoreReply{absl::StatusCode::kUnavailable});
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kUnknown);
  out = {};
  Step(FromPeer{kB, {1}, {3, peer::FetchRow{RowKeyOf("k")}}});
  EXPECT_EQ(out.reads.size(), 1u) << "read anew";
}

TEST_F(NodeTest, AFailedStoreOfAPeerIsAnsweredWithItsCode) {
  Answer(kB, 5, peer::StoreRow{.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("v", kB, 1))});
  Sent();
  Commit(absl::ResourceExhaustedError("full"));
  const std::vector<Outbox::Send> answers = Sent();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(std::get<peer::StoreReply>(answers[0].message.body).code, absl::StatusCode::kResourceExhausted);
}

TEST_F(NodeTest, AClockThatCouldNotBeSavedIsTriedAgainAtOnce) {
  Call(kPut);
  Sent();
  Commit(absl::UnavailableError("input/output error"));  // ends the actor
  out = {};
  Call({PutCall{.key = "k", .value = "next"}});
  ASSERT_TRUE(out.actor);
  Commit(absl::UnavailableError("input/output error"));
  EXPECT_TRUE(out.actor) << "the write that waits asks again";
  Commit();
  EXPECT_EQ(out.commits.size(), 1u);
}

TEST_F(NodeTest, APeersStoreIsConfirmedWhenItIsDurable) {
  Answer(kB, 5, peer::StoreRow{.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("v", kB, 1))});
  EXPECT_TRUE(Sent().empty());
  Answer(kB, 6, peer::StoreRow{.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("v", kB, 1))});
  EXPECT_TRUE(Sent().empty()) << "also what changes nothing";
  Commit();
  EXPECT_EQ(Sent().size(), 2u);
  Answer(kB, 7, peer::StoreRow{.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("v", kB, 1))});
  EXPECT_EQ(Sent().size(), 1u) << "it is durable already";
  EXPECT_TRUE(out.commits.empty());
}

}  // namespace
}  // namespace gyre
