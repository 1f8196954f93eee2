// Messages of membership, and the layouts in them: those that are taken say the same when they are sent
// again.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <optional>

#include "server/core/membership_codec.h"
#include "server/rpc/convert_control.h"
#include "tests/fuzz/fuzz.h"

namespace gyre {
namespace {

// Maps are written in order, so that equal messages are equal bytes.
std::string Bytes(const v1::ControlMessage& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// A layout that the disk may hold is the same after it was sent.
void CheckLayoutOf(const v1::ControlMessage& wire) {
  const absl::StatusOr<control::Message> message = ToControl(wire);
  const auto* push = std::get_if<control::LayoutPush>(&message->body);
  if (push == nullptr || !DecodeLayout(EncodeLayout(push->layout)).ok()) return;
  v1::ControlMessage again;
  FromControl(*message, again);
  assert(std::get<control::LayoutPush>(ToControl(again)->body).layout == push->layout);
}

std::optional<std::string> Normal(const std::string& bytes) {
  v1::ControlMessage wire;
  if (!wire.ParseFromString(bytes)) return std::nullopt;
  const absl::StatusOr<control::Message> message = ToControl(wire);
  if (!message.ok()) return std::nullopt;
  CheckLayoutOf(wire);
  v1::ControlMessage again;
  FromControl(*message, again);
  return Bytes(again);
}

}  // namespace
}  // namespace gyre

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  fuzz::Stable(fuzz::Text(data, size), Normal);
  return 0;
}
