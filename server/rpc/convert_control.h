// Between the membership messages on the wire and their values: field by field, no decisions.
#pragma once

#include <absl/status/statusor.h>

#include "proto/peer.grpc.pb.h"
#include "server/core/membership_messages.h"

namespace gyre {

// INVALID_ARGUMENT for a message that no node sends.
absl::StatusOr<control::Message> ToControl(const v1::ControlMessage& from);
void FromControl(const control::Message& from, v1::ControlMessage& to);

// A keyspace as clients and layouts carry it.
absl::StatusOr<KeyspaceSpec> ToKeyspace(const v1::Keyspace& from);
void FromKeyspace(const KeyspaceSpec& from, v1::Keyspace& to);

void FromFacts(const NodeFactsValue& from, v1::NodeFacts& to);

}  // namespace gyre
