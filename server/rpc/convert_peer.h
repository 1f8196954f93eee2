// Between the peers' protocol and the core's messages: field by field, no decisions.
#pragma once

#include <absl/status/statusor.h>

#include "proto/peer.grpc.pb.h"
#include "server/core/message.h"

namespace gyre {

// Takes the bytes out of `from`. INVALID_ARGUMENT for a message that no node sends.
absl::StatusOr<Message> ToMessage(v1::PeerMessage&& from);
// Takes the bytes out of `from`; records, which others share, are copied.
void FromMessage(Message&& from, v1::PeerMessage& to);

// What the sender of a frame works by.
LayoutMark LayoutOf(const v1::Frame& frame);

// About how many bytes a message has on the wire.
size_t WireBytes(const Message& message);

}  // namespace gyre
