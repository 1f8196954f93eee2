// Messages of peers: those that are taken say the same when they are sent again.
#include <optional>

#include "server/rpc/convert_peer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/placed.h"

namespace gyre {
namespace {

// What it means, without what means nothing: fields of later versions, no time at all, and the id of no
// write. Of a reply to a forwarded call only what a write has is of use.
std::string Meaning(v1::PeerMessage message) {
  message.DiscardUnknownFields();
  if (message.has_forward()) {
    v1::ForwardCall& call = *message.mutable_forward();
    call.set_timeout_ms(std::max(call.timeout_ms(), 1u));
    if (call.has_put() && call.put().write_id() == std::string(16, '\0'))
      call.mutable_put()->clear_write_id();
  }
  return message.SerializeAsString();
}

std::optional<std::string> Normal(const std::string& bytes) {
  v1::PeerMessage wire;
  if (!wire.ParseFromString(bytes)) return std::nullopt;
  absl::StatusOr<Message> message = ToMessage(v1::PeerMessage(wire));
  if (!message.ok()) return std::nullopt;
  assert(WireBytes(*message) > 0);
  v1::PeerMessage again;
  FromMessage(*std::move(message), again);
  assert(wire.has_forward_reply() || Meaning(again) == Meaning(wire));
  return again.SerializeAsString();
}

}  // namespace
}  // namespace gyre

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  fuzz::Stable(fuzz::Text(data, size), Normal);
  v1::PeerMessage placed;
  if (!placed.ParseFromArray(data, static_cast<int>(size))) return 0;
  fuzz::Place(placed);
  Normal(placed.SerializeAsString());
  return 0;
}
