// The bytes of a chunk of a backup.
#include "storage/format/backup_chunk.h"

#include <cassert>

#include "storage/format/bytes.h"
#include "storage/format/row_key.h"

namespace gyre {
namespace {

constexpr uint8_t kChunkFormat = 1;

absl::Status Damaged(const char* what) {
  return absl::DataLossError(std::string("a chunk of the backup is damaged: ") + what);
}

}  // namespace

ChunkWriter::ChunkWriter(uint32_t rows_per_chunk) : rows_per_chunk_(rows_per_chunk), out_(0) {
  assert(IsChunkRows(rows_per_chunk));
}

bool ChunkWriter::EndsBefore(std::string_view row_key) const {
  if (empty()) return false;
  if (bytes_ >= kChunkBytesEnough) return true;
  RowKeyParts parts;
  const bool whole = ParseRowKey(row_key, parts);
  assert(whole);
  // Rows come in the order of the upper bits of their tokens, so that the lower ones are as good as drawn.
  return whole && (parts.keyspace != keyspace_ || parts.token % rows_per_chunk_ == 0);
}

void ChunkWriter::Add(std::string_view row_key, std::string_view record) {
  RowKeyParts parts;
  const bool whole = ParseRowKey(row_key, parts);
  assert(whole);
  if (whole) keyspace_ = parts.keyspace;
  if (empty()) out_.Byte(kChunkFormat);
  out_.Varint(row_key.size());
  out_.Bytes(row_key);
  out_.Varint(record.size());
  out_.Bytes(record);
  bytes_ += row_key.size() + record.size();
  ++rows_;
}

std::string ChunkWriter::Finish() {
  assert(!empty());
  rows_ = 0;
  bytes_ = 0;
  return out_.Finish();
}

absl::StatusOr<std::vector<ChunkRow>> DecodeChunk(std::string_view bytes) {
  if (!CheckAndStrip(bytes)) return Damaged("it fails its checksum");
  ByteReader reader(bytes);
  const uint8_t format = reader.Byte();
  if (format > kChunkFormat) {
    return absl::UnimplementedError("a chunk of the backup has format " + std::to_string(format) +
                                    ", which a later version wrote; use that version");
  }
  if (format != kChunkFormat) return Damaged("it has no format");
  std::vector<ChunkRow> rows;
  RowKeyParts first;
  while (reader.ok() && !reader.AtEnd()) {
    ChunkRow row;
    row.row_key = reader.Bytes(reader.Varint());
    row.record = reader.Bytes(reader.Varint());
    RowKeyParts parts;
    if (!reader.ok() || !ParseRowKey(row.row_key, parts) || row.row_key.size() > kRowKeyBytesMax) {
      return Damaged("a row of it is not whole");
    }
    if (rows.empty()) first = parts;
    if (!rows.empty() && (row.row_key <= rows.back().row_key || parts.keyspace != first.keyspace)) {
      return Damaged("its rows are not in order");
    }
    rows.push_back(row);
  }
  if (rows.empty()) return Damaged("it has no rows");
  return rows;
}

}  // namespace gyre
