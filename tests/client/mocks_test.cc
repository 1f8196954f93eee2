// The mock that is installed for users' tests does what its comment says.
#include <gtest/gtest.h>

#include "client/client.h"
#include "client/mocks/mock_connection.h"
#include "client/resolvers.h"

namespace gyre {
namespace {

using mocks::Answer;
using testing::_;

class MocksTest : public testing::Test {
 protected:
  std::shared_ptr<testing::NiceMock<mocks::MockConnection>> connection =
      std::make_shared<testing::NiceMock<mocks::MockConnection>>();
  Client client{connection, {}};
};

TEST_F(MocksTest, WithoutExpectationsNobodyIsThere) {
  EXPECT_TRUE(absl::IsUnavailable(client.Put("k", "v").status()));
}

TEST_F(MocksTest, AnUnknownOutcomeTakesNoTime) {
  EXPECT_CALL(*connection, Send(0, _, _))
      .WillRepeatedly(mocks::Fail(Fate::kLost, absl::UnavailableError("the link broke")));
  const auto put = client.Put("k", "v");
  EXPECT_TRUE(OutcomeUnknown(put.status())) << put.status();
}

// Numbers as text; anything else is no number.
Codec<int> Numbers() {
  return {.decode = [](std::string_view text) -> absl::StatusOr<int> {
            if (text.find_first_not_of("0123456789") != text.npos || text.empty()) {
              return absl::DataLossError("\"" + std::string(text) + "\" is no number");
            }
            return std::stoi(std::string(text));
          },
          .encode = [](const int& number) { return std::to_string(number); }};
}

Client::Resolver Sum() {
  return Typed<int>(Numbers(), [](std::vector<int> siblings) -> std::optional<int> {
    int sum = 1;
    for (const int sibling : siblings) sum += sibling;
    return sum;
  });
}

TEST_F(MocksTest, ATypedResolverIsGivenValues) {
  std::string written;
  EXPECT_CALL(*connection, Send(0, _, _))
      .WillOnce(Answer(GetResult{.values = {{.bytes = "20"}, {.bytes = "21"}}, .context = "c"}))
      .WillOnce([&](PeerId peer, std::shared_ptr<Exchange> exchange, Connection::SendOptions options) {
        written = std::get<PutRequest>(exchange->request()).value;
        EXPECT_EQ(std::get<PutRequest>(exchange->request()).context, "c");
        Answer(PutResult{.context = "d", .acks = 2})(peer, exchange, options);
      });
  EXPECT_TRUE(client.Update("k", Sum()).ok());
  EXPECT_EQ(written, "42");
}

TEST_F(MocksTest, WhatCannotBeDecodedIsNotOverwritten) {
  EXPECT_CALL(*connection, Send(0, _, _))
      .WillOnce(Answer(GetResult{.values = {{.bytes = "milk"}}, .context = "c"}));
  const absl::Status status = client.Update("k", Sum());
  EXPECT_EQ(status, absl::DataLossError("\"milk\" is no number"));
}

// Nothing was written, so it must not look as if something may have been.
TEST_F(MocksTest, AResolverThatFailsLeavesNoDoubt) {
  EXPECT_CALL(*connection, Send(0, _, _)).WillOnce(Answer(GetResult{.values = {}, .context = "c"}));
  const absl::Status status = client.Update("k", [](const auto&) { return absl::UnknownError("no idea"); });
  EXPECT_FALSE(OutcomeUnknown(status)) << status;
}

}  // namespace
}  // namespace gyre
