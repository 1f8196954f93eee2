// The index of what a stable cut will collect, kept with the rows.
//
// An entry per row that holds a tombstone, a value that expires or a superseded retry, by the lowest cut at
// which something of it may go. It is a function of the row, as the sums are: changed in the same batch, from
// the same two records. A failed batch that turns up after a crash may leave an entry of no row, which
// whoever walks the index erases.
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
    // What lies behind will be met as it is on disk.
    if (!collectible_known_ && write.key > collectible_to_) continue;
    if (write.value) {
      collectible_.fetch_add(1, std::memory_order_relaxed);
    } else {
      collectible_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

void Store::CountCollectibleAnew() {
  collectible_ = 0;
  collectible_to_.clear();
  collectible_known_ = false;
}

bool Store::CountCollectible(size_t rows_max) {
  if (collectible_known_) return false;
  size_t rows = 0;
  const KeyRange rest = {.begin = collectible_to_ + '\0', .end = {}};
  const absl::Status status =
      engine_.Scan(Table::kCollect, rest, [&](std::string_view key, std::string_view) {
        collectible_to_ = std::string(key);
        return ++rows < rows_max;
      });
  collectible_.fetch_add(rows, std::memory_order_relaxed);
  // What cannot be read is not counted: this is a number for people.
  collectible_known_ = !status.ok() || rows < rows_max;
  return !collectible_known_;
}

}  // namespace gyre
