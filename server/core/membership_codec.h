// The bytes of what membership persists. Each value carries its format, its kind and a checksum.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <optional>
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

// The layout that is active beside that of `epoch`, if one is.
struct StoredOther {
  uint64_t epoch = 0;
  std::optional<Layout> other;
  bool operator==(const StoredOther&) const = default;
};
std::string EncodeOther(const StoredOther& other);
absl::StatusOr<StoredOther> DecodeOther(std::string_view bytes);

// How far the members are with the layout of `epoch`. REQUIRES: sorted by node.
struct StoredSteps {
  uint64_t epoch = 0;
  std::vector<control::MemberStep> steps;
  bool operator==(const StoredSteps&) const = default;
};
std::string EncodeSteps(const StoredSteps& steps);
absl::StatusOr<StoredSteps> DecodeSteps(std::string_view bytes);

// What keeps a node that lost its store from voting.
struct Abstention {
  uint64_t through = 0;  // the epoch of the last layout about whose successor it may have voted
  bool known = false;    // that there is no later one; until then it does not vote at all
  bool operator==(const Abstention&) const = default;
};
std::string EncodeAbstention(const Abstention& abstention);
absl::StatusOr<Abstention> DecodeAbstention(std::string_view bytes);

std::string EncodeRound(uint64_t round);
absl::StatusOr<uint64_t> DecodeRound(std::string_view bytes);

}  // namespace gyre
