// The engine as a model: ordered maps with exactly the semantics of Engine, deterministic, and with faults on
// demand.
//
// It is what other engines are tested against, and the disk of the simulator. It owns no clock, thread or
// file: what is "durable" here survives Crash(), not the process.
//
// Threads: every method may be called from any thread at any time.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "storage/engine.h"

namespace gyre {

class MemoryEngine final : public Engine {
 public:
  struct Options {
    // Batches whose notes are kept for ReplayNotes; older ones make a gap. At least 1.
    size_t log_batches_max = 16'384;
  };

  MemoryEngine() : MemoryEngine(Options{}) {}
  explicit MemoryEngine(Options options);

  absl::StatusOr<std::string> Get(Table table, std::string_view key) override;
  std::vector<absl::StatusOr<std::string>> MultiGet(Table table, std::span<const std::string> keys) override;
  absl::Status Apply(std::span<const EngineWrite> writes, Durability durability,
                     std::string_view note) override;
  absl::Status Sync() override;
  absl::Status Scan(Table table, const KeyRange& range,
                    absl::FunctionRef<bool(std::string_view key, std::string_view value)> visit) override;
  absl::StatusOr<std::unique_ptr<EngineSnapshot>> Snapshot() override;
  absl::Status EraseRange(Table table, const KeyRange& range) override;
  uint64_t LastSequence() const override;
  absl::Status ReplayNotes(uint64_t sequence, absl::FunctionRef<void(std::string_view note)> visit) override;
  Size EstimateSize() override;
  absl::Status Resume() override;

  // Whether a batch that failed is gone, or lies in the log and turns up at the next Crash().
  enum class FailedBatch : uint8_t { kGone, kInLog };
  // The next Apply, EraseRange or Sync fails with `status`. A second call replaces the first.
  // REQUIRES: `status` is one that Engine may return.
  void FailNextWrite(absl::Status status, FailedBatch batch = FailedBatch::kGone);

  // While full, everything that writes fails with RESOURCE_EXHAUSTED.
  void SetDiskFull(bool full);

  // From now on the value at `key` fails its checksum, until it is overwritten or erased.
  void Corrupt(Table table, std::string_view key);

  // What the log holds now is lost: notes before this moment make a gap.
  void LoseLog();

  enum class CrashKind : uint8_t {
    kProcess,  // nothing that was applied is lost
    kPower,    // what was not synced is lost
  };
  // Leaves what a new process would find. Batches that failed but lie in the log turn up, each at its place
  // (with all before it). Corruption stays.
  void Crash(CrashKind kind);

 private:
  using Map = std::map<std::string, RecordBytes, std::less<>>;
  class Copy;

  // One batch of the log. What it does is kept only while a crash could change whether it happened.
  struct Batch {
    uint64_t sequence = 0;
    std::string note = {};
    bool applied = false;  // false: it failed, and lurks in the log
    std::optional<std::pair<Table, KeyRange>> erased =
        {};  // a whole range, whatever is in it when it is performed
    std::vector<EngineWrite> redo = {};
    std::vector<EngineWrite> undo = {};  // in the order in which to undo
  };

  Map& Of(Table table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return tables_[static_cast<size_t>(table)]; }
  absl::StatusOr<std::string> GetLocked(Table table, std::string_view key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Fault(std::optional<FailedBatch>& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ApplyLocked(Batch batch, Durability durability) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RecordBytes Put(const EngineWrite& write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Perform(Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SyncLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TrimLog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  Map tables_[kTables] ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Batch> log_ ABSL_GUARDED_BY(mutex_);
  uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;   // of the last batch applied
  uint64_t numbered_ ABSL_GUARDED_BY(mutex_) = 0;   // of the last batch, failed ones in the log included
  uint64_t synced_ ABSL_GUARDED_BY(mutex_) = 0;     // batches up to here survive loss of power
  uint64_t settled_ ABSL_GUARDED_BY(mutex_) = 0;    // batches up to here have neither redo nor undo any more
  size_t lurking_ ABSL_GUARDED_BY(mutex_) = 0;      // failed batches in the log
  uint64_t log_floor_ ABSL_GUARDED_BY(mutex_) = 0;  // batches up to here are no longer in the log

  absl::Status next_failure_ ABSL_GUARDED_BY(mutex_);
  FailedBatch next_failed_batch_ ABSL_GUARDED_BY(mutex_) = FailedBatch::kGone;
  bool disk_full_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::pair<Table, std::string>> corrupt_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gyre
