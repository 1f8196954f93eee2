// The rows a lane has in hand: those being read, those with changes on their way to disk, and recently used
// ones.
//
// Serialises the read-modify-write of each row without a lock: an input that needs a row which is not in hand
// is parked and stepped again when the row was read. Not thread-safe: one lane owns it.
#pragma once

#include <absl/container/node_hash_map.h>
#include <cstddef>
#include <list>
#include <string>
#include <vector>

#include "server/core/message.h"

namespace gyre {

class RowTable {
 public:
  struct Entry {
    RecordBytes latest;     // with all changes, durable or not: what the next change builds on
    RecordBytes committed;  // what is durable: what a read may see
    int commits_pending = 0;

   private:
    friend class RowTable;
    bool loaded = false;
    size_t charge = 0;  // bytes counted in idle_bytes_
    std::vector<Input> parked;
    std::list<const std::string*>::iterator idle;  // valid while charge > 0
  };

  // Evict keeps idle rows up to about `idle_bytes_max`, the least recently used leaving first.
  explicit RowTable(size_t idle_bytes_max) : idle_bytes_max_(idle_bytes_max) {}

  // The row if it is in hand. The pointer is valid until the next call of a method that is not const.
  Entry* Find(const std::string& row_key);
  // Parks `input` until the row is in hand; asks for it in `out` unless that was done before.
  void Park(const std::string& row_key, Input input, Outbox& out);
  // The row was read. Returns what was parked, to be stepped again in order.
  std::vector<Input> Loaded(const std::string& row_key, RecordBytes record);
  // The row could not be read: it is forgotten. Returns what was parked.
  std::vector<Input> LoadFailed(const std::string& row_key);

  // Changes a row that Find gave: `after` is its latest state, not yet durable.
  void Change(Entry& row, RecordBytes after);
  // A change of before is durable.
  void ChangeCommitted(const std::string& row_key, const RecordBytes& after);
  // A change of before failed. Unless a later one builds on it, the row is forgotten and read anew when
  // needed.
  void ChangeFailed(const std::string& row_key);

  // Forgets the idle rows of a keyspace that was dropped.
  void DropIdle();
  // Forgets what is idle beyond the limit. Only between turns: who needs two rows at once waits for one while
  // it has the other.
  void Evict();

  size_t size() const { return rows_.size(); }
  size_t idle_bytes() const { return idle_bytes_; }

 private:
  using Rows = absl::node_hash_map<std::string, Entry>;  // entries and keys stay where they are
  void MakeIdle(Rows::iterator row);
  void MakeBusy(Entry& entry);
  void Touch(Rows::iterator row);

  size_t idle_bytes_max_;
  size_t idle_bytes_ = 0;
  Rows rows_;
  std::list<const std::string*> idle_keys_;  // of idle rows, the least recently used first
};

}  // namespace gyre
