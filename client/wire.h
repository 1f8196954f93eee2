// Between the SDK's values and the protocol's messages. Internal to the SDK: includes protobuf.
#pragma once

#include <absl/status/status.h>
#include <cstddef>

#include "client/connection.h"
#include "proto/kv.pb.h"

namespace gyre {
inline namespace sdk {

// About how many bytes a request takes on the wire; never less than its payload.
size_t WireBytes(const Request& request);

void ToWire(const Replicas& replicas, v1::Replicas& wire);
// Fills `wire`, but not its id and timeout.
void ToWire(const Request& request, v1::SessionRequest& wire);

// Takes the bytes out of `wire`.
AttemptResult FromWire(v1::SessionReply& wire);

// The layout that the answering node knows; 0 when the reply does not say.
uint64_t LayoutEpochOf(const v1::SessionReply& wire);

}  // namespace sdk
}  // namespace gyre
