// The bytes of what membership persists. Each value carries its format, its kind and a checksum.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/core/layout.h"
#include "server/core/membership_messages.h"
#include "server/core/membership_paxos.h"

namespace gyre {

// Decoders are strict: DATA_LOSS for anything that the encoder does not write, UNIMPLEMENTED for a format of
// a later version. They never allocate more than a small multiple of what they are given.
std::string EncodeLayout(const Layout& layout);
absl::StatusOr<Layout> DecodeLayout(std::string_view bytes);

std::string EncodePromise(const control::FormationPromise& promise);
absl::StatusOr<control::FormationPromise> DecodePromise(std::string_view bytes);

std::string EncodeAcceptor(const AcceptorState& state);
absl::StatusOr<AcceptorState> DecodeAcceptor(std::string_view bytes);

// Without heartbeats and facts, which mean nothing in a later life. REQUIRES: sorted by id.
std::string EncodeNodes(const std::vector<NodeInfoValue>& nodes);
absl::StatusOr<std::vector<NodeInfoValue>> DecodeNodes(std::string_view bytes);

std::string EncodeRound(uint64_t round);
absl::StatusOr<uint64_t> DecodeRound(std::string_view bytes);

}  // namespace gyre
