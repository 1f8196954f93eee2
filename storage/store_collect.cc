// The index of what a stable cut will collect, kept with the rows.
//
// An entry per row that holds a tombstone, a value that expires or a superseded retry, by the lowest cut at
// which something of it may go. It is a function of the row, as the sums are: changed in the same batch, from
// the same two records. A failed batch that turns up after a crash may leave an entry of no row, which
// whoever walks the index erases.
#include <algorithm>
#include <memory>
#include <string>

#include "storage/format/row_key.h"
#include "storage/store.h"

namespace gyre {
namespace {

uint64_t CollectCut(const RecordBytes& record) {
  return record ? CollectibleFrom(*record) : kNeverCollectible;
}

}  // namespace

// Also an entry that stays is written again: a failed batch that turns up may have erased it.
void Store::AddCollectKeys(std::span<const RowWrite> rows, std::vector<EngineWrite>& batch) {
  static const auto* const kPresent = new RecordBytes(std::make_shared<const std::string>());
  for (const RowWrite& row : rows) {
    if (IsHintKey(row.row_key)) continue;
    const uint64_t was = CollectCut(row.before);
    const uint64_t is = CollectCut(row.after);
    if (was != kNeverCollectible)
      batch.push_back({Table::kCollect, MakeCollectKey(row.row_key, was), nullptr});
    if (is != kNeverCollectible)
      batch.push_back({Table::kCollect, MakeCollectKey(row.row_key, is), *kPresent});
  }
}

void Store::CountCollectKeys(std::span<const EngineWrite> applied) {
  for (const EngineWrite& write : applied) {
    if (write.table != Table::kCollect) continue;
    collectible_ = write.value ? collectible_ + 1 : collectible_ - std::min<uint64_t>(collectible_, 1);
    // What lies behind will be met as it is on disk.
    if (!counting_ || write.key > counted_to_) continue;
    counted_ = write.value ? counted_ + 1 : counted_ - std::min<uint64_t>(counted_, 1);
  }
}

void Store::CountCollectibleAnew() {
  counted_ = 0;
  counted_to_.clear();
  counting_ = true;
}

bool Store::CountCollectible(size_t rows_max) {
  if (!counting_) return false;
  size_t rows = 0;
  const KeyRange rest = {.begin = counted_to_ + '\0', .end = {}};
  const absl::Status status =
      engine_.Scan(Table::kCollect, rest, [&](std::string_view key, std::string_view) {
        counted_to_ = std::string(key);
        return ++rows < rows_max;
      });
  counted_ += rows;
  // What cannot be read is not counted: this is a number for people.
  counting_ = status.ok() && rows == rows_max;
  if (!counting_) collectible_ = counted_;
  return counting_;
}

}  // namespace gyre
