// The bytes by which Merkle sums outlive their process: snapshots, and the notes of commits after them.
//
// Every commit has a number, and its note names the commit before it, so that a missing note shows. The
// decoders trust nothing: what they accept is canonical, and they allocate no more than a small multiple of
// what they are given (a snapshot: one tree). Layouts in storage/FORMAT.md.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/merkle.h"

namespace gyre {

// What one commit did to the sums of one keyspace.
struct KeyspaceNote {
  struct Delta {
    uint16_t leaf = 0;
    RowHash sum;
    bool operator==(const Delta&) const = default;
  };
  uint32_t keyspace = 0;
  std::vector<Delta> deltas;  // by leaf, each once
  std::vector<uint16_t>
      in_doubt;  // by leaf, each once: from here on their sums must not be trusted until recounted
  bool operator==(const KeyspaceNote&) const = default;
};

struct SumsNote {
  uint64_t number = 0;    // of this commit
  uint64_t previous = 0;  // of the last commit before it that was applied; what lies between failed
  std::vector<KeyspaceNote> keyspaces;  // by keyspace, each once
  bool operator==(const SumsNote&) const = default;
};

std::string EncodeSumsNote(const SumsNote& note);
// DATA_LOSS when `bytes` are anything but what EncodeSumsNote makes; UNIMPLEMENTED for a later version.
absl::StatusOr<SumsNote> DecodeSumsNote(std::string_view bytes);

// Where a snapshot stands: it holds the effect of all commits up to `number`, and none after it. The notes of
// those after it all lie behind `sequence` in the engine's log.
struct SumsPosition {
  uint64_t sequence = 0;
  uint64_t number = 0;
  bool operator==(const SumsPosition&) const = default;
};

struct SumsSnapshot {
  SumsPosition position;
  std::unique_ptr<MerkleTree> tree;
};

// Leaves in doubt, and those of `suspect`, are saved as in doubt.
std::string EncodeSumsSnapshot(const SumsPosition& position, const MerkleTree& tree, const LeafSet& suspect);
// DATA_LOSS when `bytes` fail their checksum or are not canonical; UNIMPLEMENTED for a later version.
absl::StatusOr<SumsSnapshot> DecodeSumsSnapshot(std::string_view bytes);

}  // namespace gyre
