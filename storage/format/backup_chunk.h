// A chunk of a backup: rows that follow one another, in bytes of their own with a checksum.
//
// Where a chunk ends depends on its rows' tokens, and not on who writes it: so replicas of a range write
// equal chunks, and so does the next backup where nothing changed. Layout in storage/FORMAT.md.
#pragma once

#include <absl/status/statusor.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/format/bytes.h"

namespace gyre {

// Rows of a chunk on average: a power of two within these.
constexpr uint32_t kChunkRowsMin = 16;
constexpr uint32_t kChunkRowsMax = 1 << 14;
// A chunk ends with the row that brings it to this size.
constexpr size_t kChunkBytesEnough = 1 << 20;
// No chunk is longer: that row has at most the largest key and record.
constexpr size_t kChunkBytesMax = 16 << 20;

inline bool IsChunkRows(uint32_t rows) {
  return rows >= kChunkRowsMin && rows <= kChunkRowsMax && (rows & (rows - 1)) == 0;
}

class ChunkWriter {
 public:
  // REQUIRES: IsChunkRows(rows_per_chunk).
  explicit ChunkWriter(uint32_t rows_per_chunk);

  bool empty() const { return rows_ == 0; }
  uint64_t rows() const { return rows_; }
  // Whether this row belongs to the next chunk. REQUIRES: `row_key` is whole, and above those added.
  bool EndsBefore(std::string_view row_key) const;
  void Add(std::string_view row_key, std::string_view record);
  // The bytes of the chunk. The writer is empty afterwards. REQUIRES: not empty.
  std::string Finish();

 private:
  const uint32_t rows_per_chunk_;
  uint32_t keyspace_ = 0;
  uint64_t rows_ = 0;
  size_t bytes_ = 0;  // of keys and records
  ByteWriter out_;
};

struct ChunkRow {
  std::string_view row_key;
  std::string_view record;
};
// The rows of a chunk; the views go into `bytes`. DATA_LOSS when it is damaged, or its rows are not whole, of
// one keyspace and in ascending order; UNIMPLEMENTED for a format of a later version.
absl::StatusOr<std::vector<ChunkRow>> DecodeChunk(std::string_view bytes);

}  // namespace gyre
