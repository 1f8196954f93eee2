// The rows a lane has in hand.
#include "server/core/row_table.h"

#include <cassert>
#include <string_view>
#include <utility>

namespace gyre {
namespace {

size_t ChargeOf(std::string_view row_key, const RecordBytes& record) {
  constexpr size_t kOverhead = 200;  // entry, list node, hash slot, control block
  return kOverhead + row_key.size() + (record ? record->size() : 0);
}

}  // namespace

RowTable::Entry* RowTable::Find(const std::string& row_key) {
  const auto row = rows_.find(row_key);
  if (row == rows_.end() || !row->second.loaded) return nullptr;
  Touch(row);
  return &row->second;
}

void RowTable::Park(const std::string& row_key, Input input, Outbox& out) {
  const auto [row, is_new] = rows_.try_emplace(row_key);
  if (is_new) out.reads.push_back(row_key);
  assert(!row->second.loaded);
  row->second.parked.push_back(std::move(input));
}

std::vector<Input> RowTable::Loaded(const std::string& row_key, RecordBytes record) {
  const auto row = rows_.find(row_key);
  assert(row != rows_.end());
  Entry& entry = row->second;
  assert(!entry.loaded);
  entry.loaded = true;
  entry.latest = entry.committed = std::move(record);
  std::vector<Input> parked = std::exchange(entry.parked, {});
  MakeIdle(row);
  return parked;
}

std::vector<Input> RowTable::LoadFailed(const std::string& row_key) {
  const auto row = rows_.find(row_key);
  assert(row != rows_.end());
  assert(!row->second.loaded);
  std::vector<Input> parked = std::exchange(row->second.parked, {});
  rows_.erase(row);
  return parked;
}

void RowTable::Change(Entry& row, RecordBytes after) {
  assert(row.loaded);
  MakeBusy(row);
  row.latest = std::move(after);
  ++row.commits_pending;
}

void RowTable::ChangeCommitted(const std::string& row_key, const RecordBytes& after) {
  const auto row = rows_.find(row_key);
  assert(row != rows_.end());
  Entry& entry = row->second;
  assert(entry.commits_pending > 0);
  entry.committed = after;
  if (--entry.commits_pending == 0) MakeIdle(row);
}

void RowTable::ChangeFailed(const std::string& row_key) {
  const auto row = rows_.find(row_key);
  assert(row != rows_.end());
  assert(row->second.commits_pending > 0);
  if (--row->second.commits_pending == 0) rows_.erase(row);
}

void RowTable::DropIdle() {
  while (!idle_keys_.empty()) {
    const auto row = rows_.find(*idle_keys_.front());
    MakeBusy(row->second);
    rows_.erase(row);
  }
}

void RowTable::MakeIdle(Rows::iterator row) {
  Entry& entry = row->second;
  if (entry.charge > 0) return;
  entry.charge = ChargeOf(row->first, entry.latest);
  idle_bytes_ += entry.charge;
  idle_keys_.push_back(&row->first);
  entry.idle = std::prev(idle_keys_.end());
}

void RowTable::MakeBusy(Entry& entry) {
  if (entry.charge == 0) return;
  idle_bytes_ -= entry.charge;
  entry.charge = 0;
  idle_keys_.erase(entry.idle);
}

void RowTable::Touch(Rows::iterator row) {
  Entry& entry = row->second;
  if (entry.charge > 0) idle_keys_.splice(idle_keys_.end(), idle_keys_, entry.idle);
}

void RowTable::Evict() {
  while (idle_bytes_ > idle_bytes_max_ && !idle_keys_.empty()) {
    const auto row = rows_.find(*idle_keys_.front());
    MakeBusy(row->second);
    rows_.erase(row);
  }
}

}  // namespace gyre
