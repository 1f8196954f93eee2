// The rows a lane has in hand.
#include "server/core/row_table.h"

#include <absl/hash/hash.h>
#include <cassert>
#include <new>
#include <utility>

namespace gyre {
namespace {

constexpr size_t kBucketsMin = 64;

size_t ChargeOf(std::string_view row_key, const RecordBytes& record) {
  constexpr size_t kOverhead = 200;  // entry, bucket, control block, what the allocator rounds up
  return kOverhead + row_key.size() + (record ? record->size() : 0);
}

}  // namespace

RowEntry::RowEntry(std::string_view row_key, size_t hash_of_key)
    : key_bytes(static_cast<uint32_t>(row_key.size())), hash(hash_of_key) {
  row_key.copy(reinterpret_cast<char*>(this + 1), row_key.size());
}

RowTable::RowTable(size_t idle_bytes_max) : idle_bytes_max_(idle_bytes_max), buckets_(kBucketsMin) {}

RowTable::~RowTable() {
  while (hand_ != nullptr) Erase(*hand_);
}

RowTable::Entry* RowTable::Find(std::string_view row_key) {
  Entry* const row = Search(row_key, absl::HashOf(row_key));
  if (row == nullptr || !row->loaded) return nullptr;
  row->used = true;
  return row;
}

// Each step needs what the step before it fetched, for all rows at once.
void RowTable::Expect(const std::vector<std::string_view>& row_keys) {
  expected_.clear();
  for (const std::string_view row_key : row_keys) {
    expected_.push_back(absl::HashOf(row_key));
    __builtin_prefetch(&BucketOf(expected_.back()));
  }
  for (const size_t hash : expected_) __builtin_prefetch(BucketOf(hash));
  for (const size_t hash : expected_) {
    if (const Entry* row = BucketOf(hash)) __builtin_prefetch(row->committed.get());
  }
}

void RowTable::Park(std::string_view row_key, Input input, Outbox& out) {
  const size_t hash = absl::HashOf(row_key);
  Entry* row = Search(row_key, hash);
  if (row == nullptr) {
    row = &Add(row_key, hash);
    row->parked = std::make_unique<std::vector<Input>>();
    out.reads.emplace_back(row_key);
  }
  assert(!row->loaded);
  row->parked->push_back(std::move(input));
}

std::vector<Input> RowTable::Loaded(std::string_view row_key, RecordBytes record) {
  Entry& row = Get(row_key);
  assert(!row.loaded);
  row.loaded = true;
  row.latest = row.committed = std::move(record);
  MakeIdle(row);
  return std::move(*std::exchange(row.parked, nullptr));
}

std::vector<Input> RowTable::LoadFailed(std::string_view row_key) {
  Entry& row = Get(row_key);
  assert(!row.loaded);
  std::vector<Input> parked = std::move(*row.parked);
  Erase(row);
  return parked;
}

void RowTable::Change(Entry& row, RecordBytes after) {
  assert(row.loaded);
  idle_bytes_ -= std::exchange(row.charge, 0);
  row.latest = std::move(after);
  ++row.commits_pending;
}

void RowTable::ChangeCommitted(Entry& row, const RecordBytes& after) {
  assert(row.commits_pending > 0);
  row.committed = after;
  if (--row.commits_pending == 0) MakeIdle(row);
}

void RowTable::ChangeFailed(Entry& row) {
  assert(row.commits_pending > 0);
  if (--row.commits_pending == 0) Erase(row);
}

void RowTable::DropIdle() {
  for (size_t left = size_; left > 0; --left) {
    Entry& row = *std::exchange(hand_, hand_->behind);
    if (row.charge > 0) Erase(row);
  }
}

// The first round takes the marks of all rows; the second would take all that are idle.
void RowTable::Evict() {
  for (size_t looks = 2 * size_; idle_bytes_ > idle_bytes_max_ && looks > 0; --looks) {
    Entry& row = *std::exchange(hand_, hand_->behind);
    if (row.charge > 0 && !std::exchange(row.used, false)) Erase(row);
  }
}

RowTable::Entry* RowTable::Search(std::string_view row_key, size_t hash) {
  Entry* row = BucketOf(hash);
  while (row != nullptr && (row->hash != hash || row->key() != row_key)) row = row->next;
  return row;
}

RowTable::Entry& RowTable::Get(std::string_view row_key) {
  Entry* const row = Search(row_key, absl::HashOf(row_key));
  assert(row != nullptr);
  return *row;
}

// It becomes the one that Evict looks at last.
RowTable::Entry& RowTable::Add(std::string_view row_key, size_t hash) {
  if (size_ == buckets_.size()) Grow();
  void* const memory = ::operator new(sizeof(Entry) + row_key.size());
  Entry& row = *new (memory) Entry(row_key, hash);
  row.next = std::exchange(BucketOf(hash), &row);
  if (hand_ == nullptr) hand_ = &row;
  row.behind = hand_;
  row.before = std::exchange(hand_->before, &row);
  row.before->behind = &row;
  ++size_;
  return row;
}

void RowTable::Grow() {
  buckets_.assign(2 * buckets_.size(), nullptr);
  for (size_t left = size_; left > 0; --left, hand_ = hand_->behind) {
    hand_->next = std::exchange(BucketOf(hand_->hash), hand_);
  }
}

void RowTable::MakeIdle(Entry& row) {
  assert(row.charge == 0);
  row.charge = ChargeOf(row.key(), row.latest);
  idle_bytes_ += row.charge;
}

void RowTable::Erase(Entry& row) {
  idle_bytes_ -= row.charge;
  --size_;
  Entry** link = &BucketOf(row.hash);
  while (*link != &row) link = &(*link)->next;
  *link = row.next;
  if (hand_ == &row) hand_ = row.behind == &row ? nullptr : row.behind;
  row.before->behind = row.behind;
  row.behind->before = row.before;
  row.~Entry();
  ::operator delete(&row);
}

}  // namespace gyre
