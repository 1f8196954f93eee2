// Contexts as clients carry them: bound to their key, and refused when anything was changed.
#include "storage/format/context_codec.h"

#include <gtest/gtest.h>
#include <random>

#include "tests/storage/causal/world.h"

namespace gyre {
namespace {

using testing::DotOf;
using testing::VectorOf;

const CausalContext kContexts[] = {
    {},
    {.seen = VectorOf({DotOf(1, 5)}), .has_own = false, .own = {}},
    {.seen = VectorOf({DotOf(1, 5), DotOf(~uint64_t{0}, kCounterMax, ~uint32_t{0})}),
     .has_own = false,
     .own = {}},
    {.seen = {}, .has_own = true, .own = DotOf(3, 9, 300)},
    {.seen = VectorOf({DotOf(1, 5), DotOf(2, 1)}), .has_own = true, .own = DotOf(3, 9)},
};

TEST(ContextCodec, ReadsWhatItWrote) {
  for (const CausalContext& context : kContexts) {
    const auto decoded = DecodeContext(EncodeContext(context, 4, "cart"), 4, "cart");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, context);
  }
}

TEST(ContextCodec, IsBoundToItsKeyAndKeyspace) {
  for (const CausalContext& context : kContexts) {
    const std::string bytes = EncodeContext(context, 4, "cart");
    for (const auto& [keyspace, key] : {std::pair<uint32_t, const char*>{4, "card"}, {5, "cart"}, {4, ""}}) {
      const absl::Status status = DecodeContext(bytes, keyspace, key).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_NE(std::string(status.message()).find("another key"), std::string::npos) << status;
    }
  }
}

TEST(ContextCodec, RefusesEveryCutAndEveryFlippedBit) {
  for (const CausalContext& context : kContexts) {
    const std::string bytes = EncodeContext(context, 4, "cart");
    for (size_t size = 0; size < bytes.size(); ++size) {
      const auto cut = DecodeContext(std::string_view(bytes).substr(0, size), 4, "cart");
      EXPECT_EQ(cut.status().code(), absl::StatusCode::kInvalidArgument);
    }
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_EQ(DecodeContext(flipped, 4, "cart").status().code(), absl::StatusCode::kInvalidArgument);
    }
    EXPECT_FALSE(DecodeContext(bytes + '\0', 4, "cart").ok());
  }
}

TEST(ContextCodec, RefusesRandomAndOverlongBytes) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 80, 0);
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_EQ(DecodeContext(bytes, 4, "cart").status().code(), absl::StatusCode::kInvalidArgument);
  }
  const absl::Status status = DecodeContext(std::string(kContextBytesMax + 1, 'x'), 4, "cart").status();
  EXPECT_NE(std::string(status.message()).find("limit"), std::string::npos) << status;
}

}  // namespace
}  // namespace gyre
