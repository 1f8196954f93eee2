// The backup of one node: all rows of one moment, in chunks.
//
// Threads: one thread at a time.
// Errors:  as AdminClient; RESOURCE_EXHAUSTED: another backup of the node is under way. After an error the
// backup has ended; another one begins at another moment.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/admin.h"

namespace gyre {
inline namespace sdk {

// Tokens in (begin, end] of a keyspace; begin == end: the whole ring.
struct BackupRange {
  uint32_t keyspace = 0;  // its id
  uint64_t begin = 0;
  uint64_t end = 0;
  bool operator==(const BackupRange&) const = default;
};
struct BackupHead {
  std::string node;
  uint64_t cluster_id = 0;
  uint64_t layout_epoch = 0;
  uint64_t stable_cut = 0;  // that the node held
  std::vector<KeyspaceInfo> keyspaces;
  std::vector<BackupRange> complete;  // what it has all rows of, as far as its stable cut reaches
};
struct BackupChunk {
  std::string sha256;  // 32 bytes
  uint64_t rows = 0;
  uint64_t bytes = 0;     // of the content
  std::string hints_for;  // the node for which these rows are hints; empty: the node's own rows
  bool known = false;     // the content is left out
  std::string content;    // storage/FORMAT.md; not checked against `sha256`
};

// The moment is that of its making; while it lives the node keeps on disk what that needs.
class NodeBackup {
 public:
  virtual ~NodeBackup() = default;
  virtual const BackupHead& head() const = 0;
  // SHA-256 (32 bytes each) of chunks that the node need not send. May be called again, until Next was.
  virtual absl::Status SkipKnown(std::span<const std::string> sha256) = 0;
  // False at the end of the backup, which then is complete.
  virtual absl::StatusOr<bool> Next(BackupChunk& chunk) = 0;
};

}  // namespace sdk
}  // namespace gyre
