// A node driven by hand: its limits, what it refuses, and bad input.
#include <gtest/gtest.h>

#include "server/core/node.h"
#include "storage/format/context_codec.h"
#include "storage/format/row_key.h"
#include "tests/server/core/driven_node.h"

namespace gyre {
namespace {

const PutCall kPut = {.key = "k", .value = "v", .write_id = {1, 2}};

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
