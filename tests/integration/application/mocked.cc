// An application's own test, over the installed mock: no cluster.
#include <gmock/gmock.h>
#include <gyre/client.h>
#include <gyre/mocks/mock_connection.h>

namespace {

using gyre::mocks::Answer;
using gyre::mocks::Fail;
using testing::_;

class Mocked : public testing::Test {
 protected:
  std::shared_ptr<testing::NiceMock<gyre::mocks::MockConnection>> connection =
      std::make_shared<testing::NiceMock<gyre::mocks::MockConnection>>();
  gyre::Client client{connection, {}};
};

TEST_F(Mocked, APutIsRetriedAfterItsAnswerWasLost) {
  EXPECT_CALL(*connection, Send(0, _, _))
      .WillOnce(Fail(gyre::Fate::kLost, absl::UnavailableError("the link broke")))
      .WillOnce(Answer(gyre::PutResult{.context = "c", .acks = 2}));
  const auto put = client.Put("k", "v");
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->acks, 2u);
}

TEST_F(Mocked, SiblingsComeAsAList) {
  EXPECT_CALL(*connection, Send(0, _, _))
      .WillOnce(Answer(gyre::GetResult{.values = {{.bytes = "a"}, {.bytes = "b"}}, .context = "c"}));
  const auto got = client.Get("k");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->values.size(), 2u);
}

TEST_F(Mocked, NobodyThere) { EXPECT_TRUE(absl::IsUnavailable(client.Get("k").status())); }

}  // namespace
