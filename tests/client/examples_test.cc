// The SDK's example compiles and does what it says against a node.
#include <gtest/gtest.h>

#include "client/examples/first_steps.cc"
#include "tests/client/fake_kv.h"

namespace {

TEST(Examples, FirstSteps) {
  std::string stored;
  gyre::FakeKv node([&](const gyre::v1::SessionBatch& batch, gyre::v1::SessionReplies& replies) {
    for (const gyre::v1::SessionRequest& request : batch.requests()) {
      if (request.has_put()) stored = request.put().value();
    }
    gyre::AnswerAll(batch, replies, stored);
    return true;
  });
  testing::internal::CaptureStdout();
  EXPECT_EQ(FirstSteps(node.address()), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "bread,milk\n");
}

}  // namespace
