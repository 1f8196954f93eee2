// The bytes of an actor's state.
#include "storage/format/meta_codec.h"

#include <gtest/gtest.h>

namespace gyre {
namespace {

TEST(MetaCodec, ReadsWhatItWrote) {
  for (const ActorState& state :
       {ActorState{}, ActorState{7, 1234, true}, ActorState{~uint32_t{0}, ~uint64_t{0}, false}}) {
    const std::string bytes = EncodeActorState(state);
    EXPECT_EQ(bytes.size(), 22u);
    const auto decoded = DecodeActorState(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, state);
  }
}

TEST(MetaCodec, FindsEveryFlippedBitAndEveryCut) {
  const std::string bytes = EncodeActorState({7, 1234, true});
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(DecodeActorState(flipped).status().code(), absl::StatusCode::kDataLoss);
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeActorState(std::string_view(bytes).substr(0, size)).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace gyre
