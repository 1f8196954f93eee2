// The rows a lane has in hand: those being read, those with changes on their way to disk, and recently used
// ones.
//
// Serialises the read-modify-write of each row without a lock: an input that needs a row which is not in hand
// is parked and stepped again when the row was read. Not thread-safe: one lane owns it.
//
// With more rows than the processor's caches hold, a look-up costs as much as the places in memory that it
// waits for, one after the other. So a row is one piece of memory that holds its key too, that it was used is
// a bit in it (CLOCK), and Expect brings near what many inputs are about to ask for, all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "server/core/message.h"

namespace gyre {

// A row in hand. It stays where it is for as long as it has changes on their way.
struct RowEntry {
  RecordBytes latest;     // with all changes, durable or not: what the next change builds on
  RecordBytes committed;  // what is durable: what a read may see
  uint32_t commits_pending = 0;

  std::string_view key() const { return {reinterpret_cast<const char*>(this + 1), key_bytes}; }

 private:
  friend class RowTable;
  RowEntry(std::string_view row_key, size_t hash);

  uint32_t key_bytes;  // of the key, which follows
  size_t hash;
  RowEntry* next = nullptr;  // of the same bucket
  RowEntry* before = this;   // the ring of all rows, in which Evict goes round
  RowEntry* behind = this;
  size_t charge = 0;  // bytes counted as idle; 0: not idle
  std::unique_ptr<std::vector<Input>> parked;
  bool loaded = false;
  bool used = false;  // since Evict last came by
};

class RowTable {
 public:
  using Entry = RowEntry;

  // Evict keeps idle rows up to about `idle_bytes_max`; those that were not used lately leave first.
  explicit RowTable(size_t idle_bytes_max);
  ~RowTable();
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;

  // The row if it is in hand. The pointer is valid until the next LoadFailed, ChangeFailed, DropIdle or
  // Evict.
  Entry* Find(std::string_view row_key);
  // Changes nothing but how long Find will take.
  void Expect(const std::vector<std::string_view>& row_keys);
  // Parks `input` until the row is in hand; asks for it in `out` unless that was done before.
  void Park(std::string_view row_key, Input input, Outbox& out);
  // The row was read. Returns what was parked, to be stepped again in order.
  std::vector<Input> Loaded(std::string_view row_key, RecordBytes record);
  // The row could not be read: it is forgotten. Returns what was parked.
  std::vector<Input> LoadFailed(std::string_view row_key);

  // Changes a row that Find gave: `after` is its latest state, not yet durable. The row stays until the
  // change ended in one of the two ways below.
  void Change(Entry& row, RecordBytes after);
  // A change of before is durable.
  void ChangeCommitted(Entry& row, const RecordBytes& after);
  // A change of before failed. Unless a later one builds on it, the row is forgotten and read anew when
  // needed.
  void ChangeFailed(Entry& row);

  // Forgets the idle rows of a keyspace that was dropped.
  void DropIdle();
  // Forgets what is idle beyond the limit. Only between turns: who needs two rows at once waits for one while
  // it has the other.
  void Evict();

  size_t size() const { return size_; }
  size_t idle_bytes() const { return idle_bytes_; }

 private:
  Entry*& BucketOf(size_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  Entry* Search(std::string_view row_key, size_t hash);
  Entry& Get(std::string_view row_key);
  Entry& Add(std::string_view row_key, size_t hash);
  void Grow();
  void MakeIdle(Entry& row);
  void Erase(Entry& row);

  size_t idle_bytes_max_;
  size_t idle_bytes_ = 0;
  size_t size_ = 0;
  std::vector<Entry*> buckets_;   // a power of two of them; at most one row a bucket on average
  Entry* hand_ = nullptr;         // where Evict goes on
  std::vector<size_t> expected_;  // hashes, for Expect
};

}  // namespace gyre
