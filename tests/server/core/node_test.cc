// A node driven by hand: what it asks for at each step of a put, delete, get, and what it refuses.
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

// ---- limits

TEST_F(NodeTest, TooManySiblingsAreRefusedAtPutsAndNeverAtMerges) {
  limits.siblings = 2;
  Restart(std::nullopt);
  const std::string nothing = EncodeContext({}, kDefault, "k");
  Put({.key = "k", .value = "1", .context = nothing});
  Put({.key = "k", .value = "2", .context = nothing});
  Call({PutCall{.key = "k", .value = "3", .context = nothing}});
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(out.commits.empty());
  Answer(kB, 5,
         peer::StoreRow{.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("4", kB, 1)), .repair = true});
  Commit();
  EXPECT_EQ(OnDisk("k").versions.size(), 3u);
  Put({.key = "k", .value = "all"});
  EXPECT_EQ(OnDisk("k").versions.size(), 1u) << "a put that leaves fewer is welcome";
}

TEST_F(NodeTest, ARecordTooLargeIsRefusedAtPutsAndNeverAtMerges) {
  limits.record_bytes = 200;
  Restart(std::nullopt);
  Call({PutCall{.key = "k", .value = std::string(300, 'x')}});
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(out.commits.empty());
  Answer(kB, 5,
         peer::StoreRow{.row_key = RowKeyOf("k"), .record = Encoded(RecordOf(std::string(300, 'y'), kB, 1))});
  Commit();
  EXPECT_EQ(OnDisk("k").versions.at(0).value.size(), 300u);
  Put({.key = "k", .value = "small"});
  EXPECT_EQ(OnDisk("k").versions.at(0).value, "small");
}

TEST_F(NodeTest, TooManyCallsAreRefused) {
  limits.calls_in_flight = 1;
  Restart(std::nullopt);
  Call(kPut);
  Call(GetCall{.key = "k"});
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(NodeTest, TimersOfFinishedCallsDoNotPileUp) {
  Step(PeerDown{kB});
  Step(PeerDown{kC});
  for (int i = 0; i < 20'000; ++i) {
    Call(GetCall{.key = "k", .r = ReplicaCount{ReplicaCount::How::kOne}}, Seconds(3600));
    Reply();
  }
  EXPECT_EQ(node->calls_in_flight(), 0u);
  EXPECT_LT(node->timers(), 5000u);
}

TEST_F(NodeTest, ADiskThatTakesNoWritesRefusesThemWhileReadsGoOn) {
  Put(kPut);
  Step(StoreHealth{absl::ResourceExhaustedError("the disk is full; free some space")});
  Call(kPut);
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kResourceExhausted);
  Answer(kB, 5, peer::StoreRow{.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("v", kB, 1))});
  EXPECT_EQ(std::get<peer::StoreReply>(Sent().at(0).message.body).code, absl::StatusCode::kResourceExhausted);
  Call(GetCall{.key = "k", .r = ReplicaCount{ReplicaCount::How::kOne}});
  EXPECT_TRUE(Reply().status.ok());
  Step(StoreHealth{});
  Put({.key = "k", .value = "again"});
}

TEST_F(NodeTest, ADrainingNodeRefusesClientsAndFinishesWhatIsUnderWay) {
  Call(kPut);
  const OpId op = Sent().at(0).message.op;
  Step(Drain{});
  Call(GetCall{.key = "k"});
  EXPECT_EQ(out.replies.size(), 1u);
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kUnavailable);
  Answer(kB, 5, peer::Forward{GetCall{.key = "k"}, Seconds(1)});
  EXPECT_EQ(std::get<peer::ForwardReply>(Sent().at(0).message.body).result.status.code(),
            absl::StatusCode::kUnavailable);
  --tickets;
  Commit();
  Answer(kB, op, peer::StoreReply{});
  EXPECT_TRUE(Reply().status.ok());
  EXPECT_EQ(node->calls_in_flight(), 0u);
  EXPECT_TRUE(node->CleanState().clean);
}

TEST_F(NodeTest, NonsenseOfPeersIsRefusedAndCounted) {
  VersionVector future;
  future.Add({{kB.value, 1}, CounterOfMillis(kWallMs + 3'600'000)});
  const auto forward = [&](std::string context) {
    Answer(kB, 5, peer::Forward{PutCall{.key = "k", .context = std::move(context)}, Seconds(1)});
    // What the context claims is asked of the others, who know nothing of it.
    for (const Outbox::Send& send : Sent()) {
      if (std::holds_alternative<peer::FetchRow>(send.message.body)) {
        Answer(send.to, send.message.op, peer::FetchReply{});
      } else {
        sent.push_back(send);
      }
    }
    EXPECT_EQ(std::get<peer::ForwardReply>(Sent().at(0).message.body).result.status.code(),
              absl::StatusCode::kInvalidArgument);
  };
  const auto store = [&](peer::StoreRow row, absl::StatusCode code) {
    Answer(kB, 5, std::move(row));
    EXPECT_EQ(std::get<peer::StoreReply>(Sent().at(0).message.body).code, code);
  };
  const RecordBytes good = Encoded(RecordOf("v", kB, 1));
  const RecordBytes garbled = std::make_shared<const std::string>("garbled");
  forward(EncodeContext({}, kDefault, "another"));
  EXPECT_EQ(node->peer_messages_refused(), 1u);
  forward(EncodeContext({.seen = future}, kDefault, "k"));
  EXPECT_EQ(node->peer_messages_refused(), 2u);
  store({.row_key = RowKeyOf("k"), .record = garbled}, absl::StatusCode::kDataLoss);
  EXPECT_EQ(node->peer_messages_refused(), 3u);
  store({.row_key = RowKeyOf("k"), .record = good, .hint_for = NodeId{99}},
        absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(node->peer_messages_refused(), 4u);
  EXPECT_TRUE(OnDisk("k").versions.empty());
  // A late answer is no nonsense.
  Answer(kB, 77, peer::StoreReply{});
  Answer(kB, 77, peer::FetchReply{});
  EXPECT_EQ(node->peer_messages_refused(), 4u);
}

TEST_F(NodeTest, BeforeThereIsALayoutNothingIsServed) {
  node.emplace(Node::Config{.self = kA}, ActorClock(kA.value, std::nullopt, kWallMs));
  Call(kPut);
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kUnavailable);
  Answer(kB, 5, peer::FetchRow{"row"});
  EXPECT_EQ(out.layout_wanted_from, kB);
  EXPECT_TRUE(Sent().empty());
}

TEST_F(NodeTest, AStoreOfAKeyspaceThatIsOnItsWayWaitsForIt) {
  const std::string row_key = MakeRowKey(2, TokenOf("k").value, "k");
  Step(FromPeer{kB, {2}, {5, peer::StoreRow{.row_key = row_key, .record = Encoded(RecordOf("v", kB, 1))}}});
  EXPECT_EQ(out.layout_wanted_from, kB);
  EXPECT_TRUE(out.sends.empty());
  Step(NewLayouts{{ThreeNodes({{.name = "new", .r = {}, .w = {}}})}});
  Commit();
  EXPECT_EQ(std::get<peer::StoreReply>(Sent().at(0).message.body).code, absl::StatusCode::kOk);
  Answer(kB, 6, peer::StoreRow{.row_key = MakeRowKey(3, 0, "k"), .record = Encoded(RecordOf("v", kB, 1))});
  EXPECT_EQ(std::get<peer::StoreReply>(Sent().at(0).message.body).code,
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(NodeTest, ACounterAtTheEndOfAllCountersIsNotWrittenOver) {
  disk[RowKeyOf("k")] = Encoded(RecordOf("v", kB, kCounterMax));
  Call(kPut);
  EXPECT_EQ(Reply().status.code(), absl::StatusCode::kFailedPrecondition);
}

// ---- bad input

ReplicaCount Exactly(int64_t count) { return {ReplicaCount::How::kCount, count}; }

TEST_F(NodeTest, BadCallsAreRefusedByNameAndNothingElseHappens) {
  const std::string garbled = EncodeContext({}, kDefault, "k").substr(1);
  const std::string of_another_key = EncodeContext({}, kDefault, "other");
  struct Row {
    const char* field;
    gyre::Call call;
  };
  const auto put = [](auto edit) {
    PutCall call = kPut;
    edit(call);
    return gyre::Call(call);
  };
  const auto get = [](auto edit) {
    GetCall call = {.key = "k"};
    edit(call);
    return gyre::Call(call);
  };
  const auto scan = [](auto edit) {
    ScanCall call;
    edit(call);
    return gyre::Call(call);
  };
  const std::vector<Row> rows = {
      {"key", put([](auto& c) { c.key = ""; })},
      {"key", put([](auto& c) { c.key = std::string(4097, 'k'); })},
      {"key", get([](auto& c) { c.key = ""; })},
      {"key", get([](auto& c) { c.key = std::string(4097, 'k'); })},
      {"key", DeleteCall{.key = ""}},
      {"value", put([](auto& c) { c.value = std::string((1 << 20) + 1, 'v'); })},
      {"w", put([](auto& c) { c.w = Exactly(0); })},
      {"w", put([](auto& c) { c.w = Exactly(-1); })},
      {"w", put([](auto& c) { c.w = Exactly(4); })},
      {"w", put([](auto& c) { c.w = Exactly(int64_t{1} << 31); })},
      {"w", put([](auto& c) { c.w = Exactly((int64_t{1} << 32) + 1); })},
      {"w", DeleteCall{.key = "k", .w = Exactly(0)}},
      {"r", get([](auto& c) { c.r = Exactly(0); })},
      {"r", get([](auto& c) { c.r = Exactly(-1); })},
      {"r", get([](auto& c) { c.r = Exactly(4); })},
      {"r", scan([](auto& c) { c.r = Exactly(4); })},
      {"keyspace", put([](auto& c) { c.keyspace = "nope"; })},
      {"keyspace", get([](auto& c) { c.keyspace = "nope"; })},
      {"keyspace", scan([](auto& c) { c.keyspace = "nope"; })},
      {"ttl", put([](auto& c) { c.ttl_ms = 0; })},
      {"ttl", put([](auto& c) { c.ttl_ms = -1; })},
      {"ttl", put([](auto& c) { c.ttl_ms = 999; })},
      {"ttl", put([](auto& c) { c.ttl_ms = INT64_MAX; })},
      {"ttl", put([](auto& c) { c.ttl_ms = INT64_MIN; })},
      {"expires_at", put([](auto& c) { c.ttl_ms = 1000, c.expires_ms = 0; })},
      {"expires_at", put([](auto& c) { c.expires_ms = UINT64_MAX; })},
      {"write_id", put([](auto& c) { c.write_id = {}, c.retry = true; })},
      {"context", put([&](auto& c) { c.context = garbled; })},
      {"context", put([&](auto& c) { c.context = ""; })},
      {"context", put([&](auto& c) { c.context = of_another_key; })},
      {"context", DeleteCall{.key = "k", .context = of_another_key}},
      {"cursor", scan([](auto& c) { c.cursor = "x"; })},
      {"cursor", scan([](auto& c) { c.cursor = MakeRowKey(2, 0, "k"); })},
      {"cursor", scan([](auto& c) { c.cursor = MakeRowKey(1, 0, "k") + std::string(4096, 'x'); })},
      {"limit", scan([](auto& c) { c.limit = 1001; })},
  };
  for (const Row& row : rows) {
    Call(row.call);
    const absl::Status status = Reply().status;
    const std::string message(status.message());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << Describe(row.call) << " " << message;
    EXPECT_NE(message.find(row.field), std::string::npos) << message;
    EXPECT_EQ(Describe(out), "") << Describe(row.call);
    EXPECT_TRUE(Sent().empty());
  }
  EXPECT_EQ(node->calls_in_flight(), 0u);
}

TEST_F(NodeTest, TheGreatestAndSmallestGoodCallsAreTaken) {
  Put({.key = std::string(4096, 'k'), .value = std::string(1 << 20, 'v'), .ttl_ms = 1000});
  Put({.key = "k", .value = "", .w = Exactly(1), .ttl_ms = int64_t{100} * 365 * 24 * 3600 * 1000});
}

TEST_F(NodeTest, AValueExpiresAtTheMomentThatItsPutSays) {
  Put({.key = "later", .value = "v", .expires_ms = now.wall_ms + 5});
  Put({.key = "never", .value = "v", .expires_ms = 0});
  Put({.key = "after", .value = "v", .ttl_ms = 1000});
  EXPECT_EQ(OnDisk("later").versions.at(0).expires_ms, now.wall_ms + 5);
  EXPECT_EQ(OnDisk("never").versions.at(0).expires_ms, 0u);
  EXPECT_EQ(OnDisk("after").versions.at(0).expires_ms, now.wall_ms + 1000);
}

}  // namespace
}  // namespace gyre
