// The manifest of a backup: what it is of, and which chunks make it. Its bytes are in storage/FORMAT.md.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/admin_backup.h"

namespace gyre::backup {

inline constexpr char kManifestName[] = "manifest.jsonl";

struct Manifest {
  struct Chunk {
    std::string name;  // SHA-256 in hexadecimal digits
    uint64_t rows = 0;
    uint64_t bytes = 0;
    bool operator==(const Chunk&) const = default;
  };
  // Rows in ascending order.
  struct Run {
    std::string hints_for;  // the node for which they are hints; empty: the node's own rows
    std::vector<Chunk> chunks;
    bool operator==(const Run&) const = default;
  };
  struct Node {
    std::string id;
    uint64_t stable_cut = 0;
    std::vector<BackupRange> complete;
    std::vector<Run> runs;  // by hints_for, each once
    bool operator==(const Node&) const = default;
  };
  uint64_t cluster_id = 0;
  uint64_t made_at_ms = 0;  // since 1970
  uint32_t chunk_rows = 0;
  std::vector<KeyspaceInfo> keyspaces;  // by id
  std::vector<Node> nodes;
};

struct Totals {
  uint64_t files = 0;  // chunks, each counted once
  uint64_t bytes = 0;  // of them
  uint64_t rows = 0;   // of all nodes
};
Totals TotalsOf(const Manifest& manifest);

std::string EncodeManifest(const Manifest& manifest);
// DATA_LOSS when it is damaged or not whole, FAILED_PRECONDITION when it names a file outside of the backup,
// UNIMPLEMENTED for a format of a later version.
absl::StatusOr<Manifest> DecodeManifest(std::string_view text);
// By which a restore knows that it goes on with the same one.
std::string IdOfManifest(std::string_view text);

}  // namespace gyre::backup
