// The rows of a backup: what its nodes held, merged as the nodes themselves would have.
//
// Threads: one thread at a time.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/backup/directory.h"
#include "client/backup/manifest.h"
#include "storage/format/backup_chunk.h"
#include "storage/format/record_codec.h"

namespace gyre::backup {

struct MergedRow {
  std::string row_key;
  const KeyspaceInfo* keyspace = nullptr;  // of the manifest
  std::string key;
  Record record;  // may be a tombstone
};

class MergedRows {
 public:
  // Both outlive it.
  MergedRows(const Directory& directory, const Manifest& manifest);

  // The next row, in the order of row keys; false at the end. DATA_LOSS when a chunk is damaged: nothing of
  // it was handed out.
  absl::StatusOr<bool> Next(MergedRow& row);

  // Of all nodes, so far; of TotalsOf(manifest).rows.
  uint64_t rows_read() const { return rows_read_; }

 private:
  struct Loaded {
    std::string content;
    std::vector<ChunkRow> rows;  // views into it
  };
  // One run of one node: where it is.
  struct Source {
    const Manifest::Node* node = nullptr;
    size_t place = 0;  // of the node, in the manifest
    const Manifest::Run* run = nullptr;
    size_t next_chunk = 0;
    std::shared_ptr<const Loaded> chunk;  // nullptr: at the end
    size_t at = 0;
    std::string_view row_key() const { return chunk->rows[at].row_key; }
  };
  // Tokens in (begin, end] without wrapping, as closed spans.
  struct Span {
    uint64_t first = 0;
    uint64_t last = 0;
  };

  absl::StatusOr<std::shared_ptr<const Loaded>> Load(const Manifest::Chunk& chunk);
  absl::Status Advance(Source& source);
  absl::Status Begin();
  bool IsComplete(size_t node, uint32_t keyspace, uint64_t token) const;
  absl::StatusOr<RecordBytes> MergeNext(const KeyspaceInfo& keyspace, uint64_t token) const;

  const Directory& directory_;
  const Manifest& manifest_;
  std::map<uint32_t, const KeyspaceInfo*> keyspaces_;                     // by id
  std::vector<std::map<uint32_t, std::vector<Span>>> complete_;           // of each node, by keyspace; sorted
  absl::flat_hash_map<std::string, std::weak_ptr<const Loaded>> loaded_;  // by name: replicas share chunks
  std::vector<Source> sources_;
  std::vector<size_t> heap_;  // of those not at their end, the lowest row key first
  std::vector<size_t> same_;  // sources at the row that is merged
  bool begun_ = false;
  uint64_t rows_read_ = 0;
};

// Reads every chunk of `manifest` once, and calls `progress` with the bytes read so far. The first that is
// damaged, missing or not what the manifest says ends it with DATA_LOSS.
absl::Status VerifyChunks(const Directory& directory, const Manifest& manifest,
                          const std::function<void(uint64_t bytes)>& progress);

}  // namespace gyre::backup
