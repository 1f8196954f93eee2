// What a node remembers of a movement: round trips, and refusal of everything else.
#include <gtest/gtest.h>

#include "server/core/movement_task.h"
#include "storage/format/bytes.h"

namespace gyre {
namespace {

MoveState UnderWay() {
  return {
      .fence = 7,
      .digest = 8,
      .ready = true,
      .control = {.paused = true, .bytes_per_second = 1 << 20},
      .progress = {{.after = "key", .source = NodeId{1}, .mixed = true, .compared = {NodeId{2}}, .keys = 3},
                   {.after = {}, .source = {}, .fetched = true, .compared = {}, .done = true}}};
}

// The same bytes with another one in the place of `at`, and a right checksum.
std::string Changed(size_t at, uint8_t byte) {
  std::string bytes = EncodeMoveState(UnderWay());
  bytes.resize(bytes.size() - kChecksumBytes);
  bytes[at] = static_cast<char>(byte);
  ByteWriter out(bytes.size() + kChecksumBytes);
  out.Bytes(bytes);
  return out.Finish();
}

TEST(MoveState, ComesBack) {
  EXPECT_EQ(*DecodeMoveState(EncodeMoveState(UnderWay())), UnderWay());
  EXPECT_EQ(*DecodeMoveState(EncodeMoveState({})), MoveState{});
}

TEST(MoveState, RefusesWhatNoNodeWrites) {
  const std::string bytes = EncodeMoveState(UnderWay());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeMoveState(bytes.substr(0, size)).status())) << size;
  }
  constexpr size_t kReady = 1 + 1 + 8;
  EXPECT_TRUE(absl::IsDataLoss(DecodeMoveState(Changed(kReady, 2)).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeMoveState(Changed(kReady + 1, 2)).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeMoveState(Changed(0, 0)).status()));
  MoveState beyond = UnderWay();
  beyond.progress[0].after.resize(kRowKeyBytesMax + 1);
  EXPECT_TRUE(absl::IsDataLoss(DecodeMoveState(EncodeMoveState(beyond)).status()));
}

TEST(MoveState, WhatIsAcceptedIsCanonical) {
  const size_t size = EncodeMoveState(UnderWay()).size() - kChecksumBytes;
  for (size_t at = 0; at < size; ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      const std::string bytes = Changed(at, static_cast<uint8_t>(byte));
      const absl::StatusOr<MoveState> state = DecodeMoveState(bytes);
      if (!state.ok()) continue;
      EXPECT_EQ(EncodeMoveState(*state), bytes) << at << " " << byte;
    }
  }
}

TEST(MoveState, ALaterFormatIsNamed) {
  EXPECT_TRUE(absl::IsUnimplemented(DecodeMoveState(Changed(0, 2)).status()));
}

}  // namespace
}  // namespace gyre
