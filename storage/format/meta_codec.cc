// The small facts of a node as bytes.
#include "storage/format/meta_codec.h"

#include <absl/status/status.h>

#include "storage/format/bytes.h"

namespace gyre {
namespace {

constexpr uint8_t kActorStateFormat = 1;
constexpr size_t kActorStateBytes = 1 + 1 + 4 + 8 + kChecksumBytes;
constexpr uint8_t kCutMarksFormat = 1;
constexpr size_t kCutMarksBytes = 1 + 8 + 8 + kChecksumBytes;

}  // namespace

std::string EncodeActorState(const ActorState& state) {
  ByteWriter out(kActorStateBytes);
  out.Byte(kActorStateFormat);
  out.Byte(state.clean ? 1 : 0);
  out.Fixed32(state.incarnation);
  out.Fixed64(state.leased_counter);
  return out.Finish();
}

absl::StatusOr<ActorState> DecodeActorState(std::string_view bytes) {
  if (!CheckAndStrip(bytes)) {
    return absl::DataLossError(
        "The stored actor state fails its checksum; wipe this node's data and let it join as a new node.");
  }
  ByteReader in(bytes);
  const uint8_t format = in.Byte();
  if (format > kActorStateFormat) {
    return absl::UnimplementedError("The stored actor state has format " + std::to_string(format) +
                                    ", which a later version wrote; start that version instead.");
  }
  const uint8_t clean = in.Byte();
  ActorState state;
  state.incarnation = in.Fixed32();
  state.leased_counter = in.Fixed64();
  state.clean = clean == 1;
  if (format != kActorStateFormat || clean > 1 || !in.AtEnd()) {
    return absl::DataLossError(
        "The stored actor state is malformed; wipe this node's data and let it join as a new node.");
  }
  return state;
}

std::string EncodeCutMarks(const CutMarks& marks) {
  ByteWriter out(kCutMarksBytes);
  out.Byte(kCutMarksFormat);
  out.Fixed64(marks.confirmed);
  out.Fixed64(marks.cut);
  return out.Finish();
}

absl::StatusOr<CutMarks> DecodeCutMarks(std::string_view bytes) {
  if (!CheckAndStrip(bytes)) {
    return absl::DataLossError(
        "The stored stable cut fails its checksum; wipe this node's data and let it fill from the others.");
  }
  ByteReader in(bytes);
  const uint8_t format = in.Byte();
  if (format > kCutMarksFormat) {
    return absl::UnimplementedError("The stored stable cut has format " + std::to_string(format) +
                                    ", which a later version wrote; start that version instead.");
  }
  CutMarks marks;
  marks.confirmed = in.Fixed64();
  marks.cut = in.Fixed64();
  if (format != kCutMarksFormat || !in.AtEnd() || marks.cut > kCounterMax || marks.confirmed > kCounterMax) {
    return absl::DataLossError(
        "The stored stable cut is malformed; wipe this node's data and let it fill from the others.");
  }
  return marks;
}

}  // namespace gyre
