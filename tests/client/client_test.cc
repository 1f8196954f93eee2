// The client's calls over a mocked connection: where attempts go, what they carry, and what the caller is
// told.
#include "client/client.h"

#include <gtest/gtest.h>

#include "tests/client/mock_connection.h"

namespace gyre {
namespace {

using absl::StatusCode;
using std::chrono::milliseconds;
using Peers = std::vector<PeerId>;

AttemptResult Answer(StatusCode code) { return {Fate::kAnswered, absl::Status(code, "x"), {}}; }
AttemptResult Lost() { return {Fate::kLost, absl::UnavailableError("stream ended"), {}}; }
AttemptResult Silent() { return {Fate::kLost, absl::DeadlineExceededError("silent"), {}}; }
AttemptResult Unsent() { return {Fate::kNotSent, absl::UnavailableError("refused"), {}}; }
AttemptResult Ok(Reply reply) { return {Fate::kAnswered, absl::OkStatus(), std::move(reply)}; }

class ClientTest : public testing::Test {
 protected:
  const PutRequest& Put(size_t i) const { return std::get<PutRequest>(mock->sent.at(i).request); }

  const std::shared_ptr<MockConnection> mock = std::make_shared<MockConnection>(3);
  Client client{mock, {.endpoints = {}, .keyspace = "shop", .timeout = milliseconds(3000)}};
};

TEST_F(ClientTest, APutCarriesWhatItWasGiven) {
  mock->script = {Ok(PutResult{.context = "ctx", .acks = 2, .fallbacks = 1})};
  const auto put = client.Put("k", "v",
                              {.keyspace = "other",
                               .w = Replicas::Count(2),
                               .strict = true,
                               .context = "seen",
                               .ttl = milliseconds(9000),
                               .timeout = std::nullopt});
  ASSERT_TRUE(put.ok());
  EXPECT_EQ(put->context, "ctx");
  EXPECT_EQ(put->acks, 2u);
  EXPECT_EQ(put->fallbacks, 1u);
  EXPECT_EQ(Put(0).keyspace, "other");
  EXPECT_EQ(Put(0).key, "k");
  EXPECT_EQ(Put(0).value, "v");
  EXPECT_EQ(Put(0).w, Replicas::Count(2));
  EXPECT_TRUE(Put(0).strict);
  EXPECT_EQ(Put(0).context, "seen");
  EXPECT_EQ(Put(0).ttl, milliseconds(9000));
  EXPECT_EQ(Put(0).write_id.size(), 16u);
  EXPECT_FALSE(Put(0).retry);
  EXPECT_EQ(mock->sent[0].options.time_allowed, milliseconds(3000));
  EXPECT_EQ(mock->sent[0].options.deadline - TimePoint(std::chrono::seconds(1)), milliseconds(1000));
}

TEST_F(ClientTest, ALostPutGoesToItsCoordinatorThenElsewhereMarkedBothTimes) {
  mock->script = {Lost(), Unsent(), Ok(PutResult{})};
  ASSERT_TRUE(client.Put("k", "v").ok());
  EXPECT_EQ(mock->SentTo(), (Peers{0, 0, 1}));
  EXPECT_FALSE(Put(0).retry);
  EXPECT_TRUE(Put(1).retry);
  EXPECT_TRUE(Put(2).retry);
  EXPECT_EQ(Put(0).write_id, Put(2).write_id);
}

TEST_F(ClientTest, AnUnsentPutIsNotMarked) {
  mock->script = {Unsent(), Ok(PutResult{})};
  ASSERT_TRUE(client.Put("k", "v").ok());
  EXPECT_EQ(mock->SentTo(), (Peers{0, 1}));
  EXPECT_FALSE(Put(1).retry);
}

TEST_F(ClientTest, ARefusedPutIsMarkedAsItWasSent) {
  mock->script = {Answer(StatusCode::kUnavailable), Ok(PutResult{})};
  ASSERT_TRUE(client.Put("k", "v").ok());
  EXPECT_TRUE(Put(1).retry);
}

TEST_F(ClientTest, AfterShutdownNothingIsTriedAgain) {
  mock->Shutdown();
  mock->script = {Answer(StatusCode::kUnavailable)};
  EXPECT_EQ(client.Get("k").status().code(), StatusCode::kCancelled);
  EXPECT_EQ(mock->sent.size(), 1u);
  mock->script = {Lost()};
  EXPECT_EQ(client.Put("k", "v").status().code(), StatusCode::kUnknown);
  EXPECT_EQ(mock->sent.size(), 2u);
}

TEST_F(ClientTest, AWriteToASilentNodeEndsByItsDeadline) {
  const AttemptResult unheard = {Fate::kNotSent, absl::DeadlineExceededError("silent"), {}};
  mock->when_unscripted = unheard;
  EXPECT_EQ(client.Put("k", "v").status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(client.Delete("k").status().code(), StatusCode::kDeadlineExceeded);
  mock->when_unscripted = Unsent();
  mock->script = {unheard};
  EXPECT_EQ(client.Put("k", "v").status().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(ClientTest, EachPutHasItsOwnWriteId) {
  mock->script = {Ok(PutResult{}), Ok(PutResult{})};
  ASSERT_TRUE(client.Put("k", "v").ok());
  ASSERT_TRUE(client.Put("k", "v").ok());
  EXPECT_NE(Put(0).write_id, Put(1).write_id);
}

TEST_F(ClientTest, APutThatMayHaveBeenMadeBeforeIsMarkedFromTheFirstAttemptOn) {
  mock->script = {Ok(PutResult{}), Ok(PutResult{})};
  PutOptions options = {.expires_at_ms = 7, .write_id = std::string(16, 'w')};
  ASSERT_TRUE(client.Put("k", "v", options).ok());
  EXPECT_FALSE(Put(0).retry);
  options.may_have_been_sent = true;
  ASSERT_TRUE(client.Put("k", "v", options).ok());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(Put(i).write_id, std::string(16, 'w'));
    EXPECT_EQ(Put(i).expires_at_ms, 7u);
    EXPECT_EQ(Put(i).ttl, std::nullopt);
  }
  EXPECT_TRUE(Put(1).retry);
  options.write_id.clear();
  EXPECT_EQ(client.Put("k", "v", options).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ClientTest, ALostPutThatIsThenRefusedIsUnknown) {
  mock->script = {Lost(), Answer(StatusCode::kResourceExhausted)};
  EXPECT_EQ(client.Put("k", "v").status().code(), StatusCode::kUnknown);
}

TEST_F(ClientTest, ALostDeleteIsUnknownAndNotSentAgain) {
  mock->script = {Unsent(), Lost()};
  const auto result = client.Delete("k");
  EXPECT_TRUE(OutcomeUnknown(result.status()));
  EXPECT_EQ(mock->SentTo(), (Peers{0, 1}));
}

TEST_F(ClientTest, WithoutAnyNodeTheAnswerComesAfterTwoRounds) {
  const auto get = client.Get("k");
  EXPECT_EQ(get.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(mock->SentTo(), (Peers{0, 1, 2, 0, 1, 2}));
}

TEST_F(ClientTest, UnavailableIsTriedUntilTheDeadlineAndStays) {
  mock->when_unscripted = Answer(StatusCode::kUnavailable);
  EXPECT_EQ(client.Get("k").status().code(), StatusCode::kUnavailable);
  EXPECT_GT(mock->sent.size(), 6u);
  EXPECT_LT(mock->sent.size(), 20u);
  EXPECT_EQ(client.Put("k", "v").status().code(), StatusCode::kUnavailable);
}

TEST_F(ClientTest, ASilentNodeGetsAThirdOfTheTime) {
  mock->script = {Silent(),
                  Ok(GetResult{.values = {{.bytes = "v", .dot = "", .expires_at_ms = 0}}, .context = "c"})};
  const auto get = client.Get("k");
  ASSERT_TRUE(get.ok());
  EXPECT_EQ(get->values.at(0).bytes, "v");
  EXPECT_EQ(mock->SentTo(), (Peers{0, 1}));
}

TEST_F(ClientTest, NoAnswerAtAllIsDeadlineExceeded) {
  mock->when_unscripted = Silent();
  EXPECT_EQ(client.Get("k").status().code(), StatusCode::kDeadlineExceeded);
  const auto put = client.Put("k", "v");
  EXPECT_EQ(put.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(OutcomeUnknown(put.status()));
}

TEST_F(ClientTest, AnotherKindOfReplyIsAnInternalError) {
  mock->script = {Ok(PutResult{})};
  EXPECT_EQ(client.Get("k").status().code(), StatusCode::kInternal);
}

TEST_F(ClientTest, UpdateWritesTheResolvedValueWithTheContextOfTheRead) {
  mock->script = {Ok(GetResult{.values = {{.bytes = "a", .dot = "", .expires_at_ms = 0},
                                          {.bytes = "b", .dot = "", .expires_at_ms = 0}},
                               .context = "seen"}),
                  Ok(PutResult{})};
  std::vector<std::string> given;
  ASSERT_TRUE(client
                  .Update("k",
                          [&](const std::vector<std::string>& values) {
                            given = values;
                            return values[0] + values[1];
                          })
                  .ok());
  EXPECT_EQ(given, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(Put(1).value, "ab");
  EXPECT_EQ(Put(1).context, "seen");
}

TEST_F(ClientTest, UpdateToNothingDeletes) {
  mock->script = {Ok(GetResult{.values = {}, .context = "nothing seen"}), Ok(DeleteResult{})};
  ASSERT_TRUE(client.Update("k", [](const auto&) { return std::nullopt; }).ok());
  EXPECT_EQ(std::get<DeleteRequest>(mock->sent.at(1).request).context, "nothing seen");
}

TEST_F(ClientTest, AnUpdateThatCouldNotReadHasWrittenNothing) {
  mock->when_unscripted = Silent();
  const absl::Status status = client.Update("k", [](const auto&) { return "v"; });
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_FALSE(OutcomeUnknown(status));
}

TEST_F(ClientTest, ScanFollowsTheCursor) {
  mock->script = {Ok(ScanPage{.rows = {{.key = "a", .values = {}, .context = ""}}, .next_cursor = "after a"}),
                  Ok(ScanPage{.rows = {}, .next_cursor = "after b"}),
                  Ok(ScanPage{.rows = {{.key = "c", .values = {}, .context = ""}}, .next_cursor = ""})};
  std::vector<std::string> keys;
  ASSERT_TRUE(
      client
          .Scan({.keyspace = {}, .prefix = "p", .page_rows = 5, .keys_only = true, .r = {}, .timeout = {}},
                [&](const ScanRow& row) {
                  keys.push_back(row.key);
                  return true;
                })
          .ok());
  EXPECT_EQ(keys, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(std::get<ScanRequest>(mock->sent.at(2).request).cursor, "after b");
  EXPECT_EQ(std::get<ScanRequest>(mock->sent.at(2).request).prefix, "p");
}

TEST_F(ClientTest, TheLastCopyEndsTheConnection) {
  const auto other = std::make_shared<MockConnection>(1);
  {
    const Client first(other, {.endpoints = {}});
    { const Client copy = first; }
    EXPECT_FALSE(other->ended);
  }
  EXPECT_TRUE(other->ended);
}

TEST_F(ClientTest, BadOptionsAreNamed) {
  EXPECT_EQ(
      client.Get("k", {.keyspace = {}, .r = {}, .strict = false, .timeout = milliseconds(0)}).status().code(),
      StatusCode::kInvalidArgument);
  EXPECT_EQ(Client::Connect({}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Client::Connect({.endpoints = {"nowhere"}}).status().message(),
            "endpoint \"nowhere\" is not HOST:PORT");
}

}  // namespace
}  // namespace gyre
