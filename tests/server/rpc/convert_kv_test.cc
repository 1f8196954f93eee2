// Results on the wire, as a session's reply and as the reply to a forwarded write.
#include "server/rpc/convert_kv.h"

#include <gtest/gtest.h>

namespace gyre {
namespace {

CallResult ThereAndBack(CallResult result) {
  v1::SessionReply reply;
  FromResult(std::move(result), reply);
  return ToResult(std::move(reply));
}

TEST(ConvertKv, AFailureKeepsItsCountsThereAndBack) {
  const absl::Status status = WithAcks(absl::UnknownError("outcome unknown"), {1, 3});
  const CallResult back = ThereAndBack({.status = status});
  EXPECT_EQ(back.status, status);
  EXPECT_EQ(AcksOf(back.status), (Acks{1, 3}));
}

TEST(ConvertKv, AFailureWithoutCountsHasNone) {
  v1::SessionReply reply;
  FromResult({.status = absl::InvalidArgumentError("key is empty")}, reply);
  EXPECT_FALSE(reply.has_acknowledgements());
  EXPECT_EQ(AcksOf(ToResult(std::move(reply)).status), std::nullopt);
}

TEST(ConvertKv, AWriteComesBackAsItWas) {
  for (const bool is_delete : {false, true}) {
    const CallResult back = ThereAndBack(
        {.result = WriteResult{.context = "c", .acks = 3, .fallbacks = 1, .is_delete = is_delete}});
    ASSERT_TRUE(back.status.ok());
    const auto& write = std::get<WriteResult>(back.result);
    EXPECT_EQ(write.context, "c");
    EXPECT_EQ(write.acks, 3);
    EXPECT_EQ(write.fallbacks, 1);
    EXPECT_EQ(write.is_delete, is_delete);
  }
}

}  // namespace
}  // namespace gyre
