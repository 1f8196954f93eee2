// Chunks of a backup: one encoding each, rows in order.
#include "storage/format/backup_chunk.h"
#include "storage/format/row_key.h"
#include "tests/fuzz/fuzz.h"

namespace gyre {
namespace {

std::string Encode(const std::vector<ChunkRow>& rows) {
  ChunkWriter out(kChunkRowsMin);
  for (const ChunkRow& row : rows) out.Add(row.row_key, row.record);
  return out.Finish();
}

void Check(const std::vector<ChunkRow>& rows, const std::string& bytes) {
  assert(!rows.empty());
  assert(rows.size() * (1 + kRowKeyPrefixBytes + 1) <= bytes.size());
  for (size_t i = 1; i < rows.size(); ++i) assert(rows[i - 1].row_key < rows[i].row_key);
}

}  // namespace
}  // namespace gyre

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  fuzz::Canonical(fuzz::Text(data, size), DecodeChunk, Encode, Check);
  return 0;
}
