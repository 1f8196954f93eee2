// Read-your-writes and hedging: what a client asks its nodes beyond a plain get.
#include <gtest/gtest.h>

#include "client/client.h"
#include "client/hedge.h"
#include "client/mocks/mock_connection.h"
#include "client/session_contexts.h"

namespace gyre {
namespace {

using mocks::Answer;
using testing::_;
using testing::ElementsAre;
using testing::IsEmpty;

using Mock = testing::NiceMock<mocks::MockConnection>;

class ReadYourWrites : public testing::Test {
 protected:
  // What the next get tells its node to have seen.
  std::vector<std::string> Asked(Client& client, const GetOptions& options = {}) {
    std::vector<std::string> asked;
    EXPECT_CALL(*connection, Send(0, _, _))
        .WillOnce([&](PeerId peer, std::shared_ptr<Exchange> exchange, Connection::SendOptions send) {
          asked = std::get<GetRequest>(exchange->request()).contexts;
          Answer(GetResult{.values = {}, .context = "read"})(peer, exchange, send);
        });
    EXPECT_TRUE(client.Get("k", options).ok());
    return asked;
  }
  void Put(Client& client, const std::string& context) {
    EXPECT_CALL(*connection, Send(0, _, _)).WillOnce(Answer(PutResult{.context = context, .acks = 1}));
    EXPECT_TRUE(client.Put("k", "v").ok());
  }

  std::shared_ptr<Mock> connection = std::make_shared<Mock>();
};

TEST_F(ReadYourWrites, OnlyWhenAskedFor) {
  Client client(connection, {});
  Put(client, "w1");
  EXPECT_THAT(Asked(client), IsEmpty());
  EXPECT_THAT(Asked(client, {.context = "mine"}), ElementsAre("mine"));
}

TEST_F(ReadYourWrites, AReadMustHaveSeenTheWritesAndTheReadBefore) {
  Client client(connection, {.read_your_writes = true});
  EXPECT_THAT(Asked(client), IsEmpty());
  Put(client, "w1");
  Put(client, "w2");
  Client copy = client;
  EXPECT_THAT(Asked(copy), ElementsAre("read", "w1", "w2"));
  EXPECT_THAT(Asked(client), ElementsAre("read")) << "which has seen all of them";
}

TEST(SessionContextsTest, BothBoundsHold) {
  SessionContexts contexts;
  for (size_t i = 0; i <= SessionContexts::kContextsMax; ++i) contexts.Wrote("ks", "k", std::to_string(i));
  EXPECT_EQ(contexts.Of("ks", "k").size(), SessionContexts::kContextsMax);
  EXPECT_EQ(contexts.Of("ks", "k").back(), std::to_string(SessionContexts::kContextsMax));
  for (size_t i = 0; i < SessionContexts::kKeysMax; ++i)
    contexts.Wrote("ks", "other" + std::to_string(i), "c");
  EXPECT_THAT(contexts.Of("ks", "k"), IsEmpty());
}

class Hedged : public testing::Test {
 protected:
  Hedged() {
    ON_CALL(*connection, Pick(_, _, _))
        .WillByDefault(
            [](std::string_view, std::string_view, std::span<const PeerId> avoid) -> std::optional<PeerId> {
              for (PeerId peer = 0; peer < 2; ++peer) {
                if (std::find(avoid.begin(), avoid.end(), peer) == avoid.end()) return peer;
              }
              return std::nullopt;
            });
  }
  std::shared_ptr<Mock> connection = std::make_shared<Mock>();
};

TEST_F(Hedged, TheSecondNodeIsAskedWhenTheFirstIsSlow) {
  // The mock's time comes at once: node 0 is slow, and says nothing before node 1 has answered.
  std::shared_ptr<Exchange> slow;
  EXPECT_CALL(*connection, Send(0, _, _))
      .WillOnce(
          [&](PeerId, std::shared_ptr<Exchange> exchange, Connection::SendOptions) { slow = exchange; });
  EXPECT_CALL(*connection, Send(1, _, _))
      .WillOnce(Answer(GetResult{.values = {{.bytes = "v"}}, .context = "c"}));
  Client client(connection, {.hedge_after = std::chrono::milliseconds(10)});
  int answers = 0;
  client.AsyncGet("k", {}, [&](const absl::StatusOr<GetResult>& get) {
    ++answers;
    ASSERT_TRUE(get.ok()) << get.status();
    EXPECT_EQ(get->values.at(0).bytes, "v");
  });
  EXPECT_EQ(answers, 1);
  ASSERT_NE(slow, nullptr);
  slow->Done({.fate = Fate::kAnswered, .status = absl::OkStatus(), .reply = GetResult{}});
  EXPECT_EQ(answers, 1) << "the late answer is nobody's";
}

TEST_F(Hedged, AWriteNeverIs) {
  EXPECT_CALL(*connection, Send(0, _, _)).WillOnce(Answer(PutResult{.context = "c", .acks = 2}));
  EXPECT_CALL(*connection, Send(1, _, _)).Times(0);
  Client client(connection, {.hedge_after = std::chrono::milliseconds(10)});
  EXPECT_TRUE(client.Put("k", "v").ok());
}

TEST_F(Hedged, TheBudgetIsKept) {
  HedgeBudget budget(.25);
  int hedges = 0;
  for (int i = 0; i < 100; ++i) {
    budget.Earn();
    if (budget.Spend()) ++hedges;
  }
  EXPECT_EQ(hedges, 26) << "one to begin with, and one for each four reads";
}

TEST_F(Hedged, WhatIsOutOfBoundsIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      Client::Connect({.endpoints = {"a:1"}, .hedge_after = std::chrono::milliseconds(-1)}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect({.endpoints = {"a:1"}, .hedge_budget = 0}).status()));
}

// Errors say which nodes were asked.
TEST_F(Hedged, AnErrorNamesTheNodes) {
  class Named : public Mock {
   public:
    std::string AddressOf(PeerId peer) override { return "node-" + std::to_string(peer) + ":7400"; }
  };
  const auto named = std::make_shared<Named>();
  EXPECT_CALL(*named, Send(0, _, _))
      .WillOnce(mocks::Fail(Fate::kAnswered, absl::InvalidArgumentError("no such keyspace")));
  Client client(named, {});
  EXPECT_THAT(NodesAsked(client.Get("k").status()), ElementsAre("node-0:7400"));
  EXPECT_THAT(NodesAsked(absl::OkStatus()), IsEmpty());
}

// And how many replicas answered, and had to: also at the end of the attempts that a refusal costs.
TEST_F(Hedged, AnErrorSaysHowManyReplicasAnswered) {
  const auto mock = std::make_shared<Mock>();
  Client client(mock, {});
  const Acknowledgements one_of_three = {.got = 1, .needed = 3};
  for (const absl::Status& status :
       {absl::UnknownError("outcome unknown"), absl::UnavailableError("too few")}) {
    EXPECT_CALL(*mock, Send(0, _, _))
        .WillRepeatedly(mocks::Fail(Fate::kAnswered, WithAcknowledgements(status, one_of_three)));
    const absl::Status failed = client.Put("k", "v").status();
    EXPECT_EQ(failed.code(), status.code());
    EXPECT_EQ(AcknowledgementsOf(failed), one_of_three) << failed;
    EXPECT_EQ(failed.message(), status.message());
  }
}

// What the last coordinator counted says nothing of an attempt whose answer was lost.
TEST_F(Hedged, AnErrorSaysNothingOfReplicasWhereNobodyKnows) {
  const auto mock = std::make_shared<Mock>();
  Client client(mock, {});
  EXPECT_CALL(*mock, Send(0, _, _))
      .WillOnce(mocks::Fail(Fate::kLost, absl::UnavailableError("the link broke")))
      .WillRepeatedly(
          mocks::Fail(Fate::kAnswered, WithAcknowledgements(absl::UnavailableError("too few"), {0, 2})));
  const absl::Status failed = client.Put("k", "v").status();
  EXPECT_TRUE(OutcomeUnknown(failed)) << failed;
  EXPECT_EQ(AcknowledgementsOf(failed), std::nullopt);
  EXPECT_EQ(AcknowledgementsOf(absl::OkStatus()), std::nullopt);
}

}  // namespace
}  // namespace gyre
