// A call that fails for want of replicas says how many answered and how many had to.
#include "server/core/acks.h"

#include <gtest/gtest.h>

#include "tests/server/core/driven_node.h"

namespace gyre {
namespace {

using absl::StatusCode;

const PutCall kPut = {.key = "k", .value = "v", .write_id = {1, 2}};
constexpr ReplicaCount kAll{ReplicaCount::How::kAll};

struct AcksTest : NodeTest {
  // The one reply is a failure with this code and these counts.
  void ExpectFailure(StatusCode code, std::optional<Acks> acks) {
    const CallResult result = Reply();
    EXPECT_EQ(result.status.code(), code) << result.status;
    EXPECT_EQ(AcksOf(result.status), acks) << result.status;
  }
};

TEST_F(AcksTest, AStatusKeepsTheLastCounts) {
  EXPECT_EQ(AcksOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(AcksOf(absl::UnavailableError("why")), std::nullopt);
  const absl::Status status = WithAcks(WithAcks(absl::UnavailableError("why"), {0, 2}), {1, 3});
  EXPECT_EQ(AcksOf(status), (Acks{1, 3}));
  EXPECT_EQ(status.message(), "why");
}

TEST_F(AcksTest, AWriteThatIsNotBegunHasNone) {
  Step(PeerDown{kB});
  Step(PeerDown{kC});
  Call(kPut);
  ExpectFailure(StatusCode::kUnavailable, Acks{0, 2});
  Step(ClientCall{
      {++tickets}, PutCall{.key = "other", .w = ReplicaCount{ReplicaCount::How::kOne}}, now.steady});
  Tick();
  ExpectFailure(StatusCode::kUnavailable, Acks{0, 1});
}

TEST_F(AcksTest, AWriteCountsThoseThatConfirmedIt) {
  Call(kPut);
  const OpId op = Sent().at(0).message.op;
  Commit();
  Answer(kB, op, peer::StoreReply{StatusCode::kResourceExhausted});
  Step(PeerDown{kC});
  ExpectFailure(StatusCode::kUnknown, Acks{1, 2});
}

TEST_F(AcksTest, AWriteThatIsLateCountsThoseThatWereNot) {
  PutCall put = kPut;
  put.w = kAll;
  Call(put);
  const OpId op = Sent().at(0).message.op;
  Commit();
  Answer(kC, op, peer::StoreReply{});
  TickAfter(Seconds(1));
  ExpectFailure(StatusCode::kUnknown, Acks{2, 3});
}

TEST_F(AcksTest, TheReadBeforeAWriteCountsItsOwn) {
  Call(DeleteCall{.key = "k", .w = kAll});
  const Outbox::Send fetch = Sent().at(0);
  Answer(fetch.to, fetch.message.op, peer::FetchReply{.code = StatusCode::kInternal});
  Step(PeerDown{fetch.to == kB ? kC : kB});
  ExpectFailure(StatusCode::kUnavailable, Acks{1, 2});
}

TEST_F(AcksTest, AReadCountsWhatWasAnswered) {
  Call(GetCall{.key = "k", .r = kAll});
  const Outbox::Send fetch = Sent().at(0);
  Answer(fetch.to, fetch.message.op, peer::FetchReply{});
  TickAfter(Seconds(1));
  ExpectFailure(StatusCode::kUnavailable, Acks{2, 3});
  Step(PeerDown{kB});
  for (const gyre::Call& call :
       {gyre::Call(GetCall{.key = "k", .r = kAll}), gyre::Call(ScanCall{.r = kAll})}) {
    Call(call);
    ExpectFailure(StatusCode::kUnavailable, Acks{0, 3});
  }
}

TEST_F(AcksTest, AClusterThatIsTooSmallHasNone) {
  Restart(std::nullopt, ThreeNodes({{.name = "five", .n = 5, .r = {}, .w = {}}}));
  Call(GetCall{.keyspace = "five", .key = "k", .r = ReplicaCount{ReplicaCount::How::kCount, 4}});
  ExpectFailure(StatusCode::kUnavailable, Acks{0, 4});
}

TEST_F(AcksTest, OtherFailuresSayNothingOfThem) {
  Call(PutCall{.key = "", .value = "v"});
  ExpectFailure(StatusCode::kInvalidArgument, std::nullopt);
  Step(Drain{});
  Call(kPut);
  ExpectFailure(StatusCode::kUnavailable, std::nullopt);
}

// The node that was asked passes on what the coordinator counted, which has less time, so that it comes
// first.
TEST_F(AcksTest, WhoForwardsPassesThemOn) {
  const std::shared_ptr<const View> view = ThreeNodes({{.name = "two", .n = 2, .r = {}, .w = {}}});
  Restart(std::nullopt, view);
  std::string key = "a";
  while (ReplicaSet::Of(*view, *view->Keyspace("two"), TokenOf(key)).SlotOf(kA) >= 0) ++key.back();
  Call(PutCall{.keyspace = "two", .key = key, .value = "v"}, Seconds(1));
  const Outbox::Send forward = Sent().at(0);
  EXPECT_EQ(std::get<peer::Forward>(forward.message.body).timeout, Millis(900));
  Answer(forward.to, forward.message.op,
         peer::ForwardReply{{.status = WithAcks(absl::UnknownError("outcome unknown"), {1, 2})}});
  ExpectFailure(StatusCode::kUnknown, Acks{1, 2});
  // Where it says nothing, nobody knows.
  Call(PutCall{.keyspace = "two", .key = key, .value = "v"});
  TickAfter(Seconds(1));
  ExpectFailure(StatusCode::kUnknown, std::nullopt);
}

}  // namespace
}  // namespace gyre
