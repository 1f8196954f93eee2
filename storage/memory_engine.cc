// The model of Engine: maps, a log that can be undone and redone, and faults.
#include "storage/memory_engine.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace gyre {
namespace {

std::string NameOf(Table table) {
  constexpr const char* kNames[kTables] = {"rows", "hints", "meta", "collect"};
  return kNames[static_cast<size_t>(table)];
}

absl::Status CorruptValue(Table table) {
  return absl::DataLossError("a value in the table '" + NameOf(table) +
                             "' of the memory engine fails its checksum; repair it from a replica");
}

// The entries of [range.begin, range.end).
template <typename Map>
auto Entries(Map& map, const KeyRange& range) {
  const auto begin = map.lower_bound(range.begin);
  if (range.end.empty()) return std::pair(begin, map.end());
  if (range.end <= range.begin) return std::pair(begin, begin);
  return std::pair(begin, map.lower_bound(range.end));
}

}  // namespace

MemoryEngine::MemoryEngine(Options options) : options_(options) { assert(options_.log_batches_max >= 1); }

absl::StatusOr<std::string> MemoryEngine::Get(Table table, std::string_view key) {
  absl::MutexLock lock(&mutex_);
  return GetLocked(table, key);
}

absl::StatusOr<std::string> MemoryEngine::GetLocked(Table table, std::string_view key) {
  const auto found = Of(table).find(key);
  if (found == Of(table).end()) return absl::NotFoundError("no entry in the table '" + NameOf(table) + "'");
  if (corrupt_.contains({table, found->first})) return CorruptValue(table);
  return *found->second;
}

std::vector<absl::StatusOr<std::string>> MemoryEngine::MultiGet(Table table,
                                                                std::span<const std::string> keys) {
  absl::MutexLock lock(&mutex_);
  std::vector<absl::StatusOr<std::string>> results;
  results.reserve(keys.size());
  for (const std::string& key : keys) results.push_back(GetLocked(table, key));
  return results;
}

absl::Status MemoryEngine::Apply(std::span<const EngineWrite> writes, Durability durability,
                                 std::string_view note) {
  assert(!writes.empty());
  absl::MutexLock lock(&mutex_);
  return ApplyLocked({.note = std::string(note), .redo = {writes.begin(), writes.end()}}, durability);
}

absl::Status MemoryEngine::ApplyLocked(Batch new_batch, Durability durability) {
  std::optional<FailedBatch> failed;
  const absl::Status fault = Fault(failed);
  if (!fault.ok() && failed != FailedBatch::kInLog) return fault;
  Batch& batch = log_.emplace_back(std::move(new_batch));
  batch.sequence = ++numbered_;
  if (fault.ok()) {
    Perform(batch);
    for (const EngineWrite& write : batch.redo) corrupt_.erase({write.table, write.key});
    sequence_ = batch.sequence;
    if (durability == Durability::kDisk) SyncLocked();
  } else {
    ++lurking_;
  }
  TrimLog();
  return fault;
}

absl::Status MemoryEngine::Sync() {
  absl::MutexLock lock(&mutex_);
  std::optional<FailedBatch> failed;
  const absl::Status fault = Fault(failed);
  if (fault.ok()) SyncLocked();
  return fault;
}

absl::Status MemoryEngine::Scan(Table table, const KeyRange& range,
                                absl::FunctionRef<bool(std::string_view key, std::string_view value)> visit) {
  absl::MutexLock lock(&mutex_);
  const auto [begin, end] = Entries(Of(table), range);
  for (auto entry = begin; entry != end; ++entry) {
    if (!corrupt_.empty() && corrupt_.contains({table, entry->first})) return CorruptValue(table);
    if (!visit(entry->first, *entry->second)) break;
  }
  return absl::OkStatus();
}

// A copy of the tables, which share their values with it.
class MemoryEngine::Copy final : public EngineSnapshot {
 public:
  explicit Copy(MemoryEngine& engine) : engine_(engine) {
    absl::MutexLock lock(&engine.mutex_);
    for (int table = 0; table < kTables; ++table) tables_[table] = engine.tables_[table];
  }

  absl::StatusOr<std::string> Get(Table table, std::string_view key) override {
    if (IsCorrupt(table, key)) return CorruptValue(table);
    const Map& map = tables_[static_cast<size_t>(table)];
    const auto entry = map.find(key);
    if (entry == map.end()) return absl::NotFoundError("no such entry in the memory engine");
    return *entry->second;
  }

  absl::Status Scan(Table table, const KeyRange& range,
                    absl::FunctionRef<bool(std::string_view key, std::string_view value)> visit) override {
    const auto [begin, end] = Entries(tables_[static_cast<size_t>(table)], range);
    for (auto entry = begin; entry != end; ++entry) {
      if (IsCorrupt(table, entry->first)) return CorruptValue(table);
      if (!visit(entry->first, *entry->second)) break;
    }
    return absl::OkStatus();
  }

 private:
  bool IsCorrupt(Table table, std::string_view key) {
    absl::MutexLock lock(&engine_.mutex_);
    return !engine_.corrupt_.empty() && engine_.corrupt_.contains({table, std::string(key)});
  }

  MemoryEngine& engine_;
  Map tables_[kTables];
};

absl::StatusOr<std::unique_ptr<EngineSnapshot>> MemoryEngine::Snapshot() {
  return std::make_unique<Copy>(*this);
}

absl::Status MemoryEngine::EraseRange(Table table, const KeyRange& range) {
  absl::MutexLock lock(&mutex_);
  return ApplyLocked({.erased = {{table, range}}}, Durability::kDisk);
}

uint64_t MemoryEngine::LastSequence() const {
  absl::MutexLock lock(&mutex_);
  return sequence_;
}

absl::Status MemoryEngine::ReplayNotes(uint64_t sequence,
                                       absl::FunctionRef<void(std::string_view note)> visit) {
  absl::MutexLock lock(&mutex_);
  if (sequence < log_floor_ || sequence > sequence_) {
    return absl::DataLossError("the log of the memory engine holds the batches from " +
                               std::to_string(log_floor_ + 1) + " to " + std::to_string(sequence_) +
                               ", but those after " + std::to_string(sequence) +
                               " are asked for; recount what their notes would have told");
  }
  for (const Batch& batch : log_) {
    if (batch.sequence > sequence && batch.applied && !batch.note.empty()) visit(batch.note);
  }
  return absl::OkStatus();
}

Engine::Size MemoryEngine::EstimateSize() {
  absl::MutexLock lock(&mutex_);
  return {.keys = Of(Table::kRows).size(), .bytes = bytes_};
}

absl::Status MemoryEngine::Resume() {
  absl::MutexLock lock(&mutex_);
  if (!disk_full_) return absl::OkStatus();
  return absl::ResourceExhaustedError("the disk of the memory engine is still full; free some space");
}

void MemoryEngine::FailNextWrite(absl::Status status, FailedBatch batch) {
  assert(!status.ok());
  absl::MutexLock lock(&mutex_);
  next_failure_ = std::move(status);
  next_failed_batch_ = batch;
}

void MemoryEngine::SetDiskFull(bool full) {
  absl::MutexLock lock(&mutex_);
  disk_full_ = full;
}

void MemoryEngine::Corrupt(Table table, std::string_view key) {
  absl::MutexLock lock(&mutex_);
  corrupt_.insert({table, std::string(key)});
}

void MemoryEngine::LoseLog() {
  absl::MutexLock lock(&mutex_);
  log_.clear();
  lurking_ = 0;
  log_floor_ = numbered_;
  sequence_ = numbered_;
  synced_ = numbered_;
}

void MemoryEngine::Crash(CrashKind kind) {
  absl::MutexLock lock(&mutex_);
  // A log has a prefix or all of it: whatever lies before a batch that turns up turns up too.
  uint64_t last = kind == CrashKind::kProcess ? sequence_ : synced_;
  for (const Batch& batch : log_) {
    if (!batch.applied) last = std::max(last, batch.sequence);
  }
  for (auto batch = log_.rbegin(); batch != log_.rend(); ++batch) {
    for (const EngineWrite& write : batch->undo) Put(write);
    batch->undo.clear();
  }
  while (!log_.empty() && log_.back().sequence > last) log_.pop_back();
  for (Batch& batch : log_) Perform(batch);
  sequence_ = last;
  numbered_ = last;
  lurking_ = 0;
  next_failure_ = absl::OkStatus();
  SyncLocked();
}

// What stands in the way of a write, and what becomes of its batch.
absl::Status MemoryEngine::Fault(std::optional<FailedBatch>& batch) {
  if (!next_failure_.ok()) {
    batch = next_failed_batch_;
    return std::exchange(next_failure_, absl::OkStatus());
  }
  if (disk_full_)
    return absl::ResourceExhaustedError("the disk of the memory engine is full; free some space");
  return absl::OkStatus();
}

// Stores or erases, and returns what was there.
RecordBytes MemoryEngine::Put(const EngineWrite& write) {
  Map& map = Of(write.table);
  RecordBytes before;
  if (const auto found = map.find(write.key); found != map.end()) {
    before = found->second;
    bytes_ -= write.key.size() + before->size();
    if (write.value == nullptr) {
      map.erase(found);
    } else {
      found->second = write.value;
    }
  } else if (write.value != nullptr) {
    map.emplace(write.key, write.value);
  }
  if (write.value != nullptr) bytes_ += write.key.size() + write.value->size();
  return before;
}

// Applies what the batch says, if it says anything still.
void MemoryEngine::Perform(Batch& batch) {
  if (batch.erased) {
    const auto& [table, range] = *batch.erased;
    batch.redo.clear();
    const auto [begin, end] = Entries(Of(table), range);
    for (auto entry = begin; entry != end; ++entry) batch.redo.push_back({table, entry->first, nullptr});
  }
  batch.undo.reserve(batch.redo.size());
  for (const EngineWrite& write : batch.redo) {
    batch.undo.push_back({write.table, write.key, Put(write)});
  }
  std::reverse(batch.undo.begin(), batch.undo.end());
  batch.applied = true;
}

// From here on a crash changes nothing of what was applied, unless a failed batch lurks before it.
void MemoryEngine::SyncLocked() {
  synced_ = sequence_;
  if (lurking_ > 0) return;
  for (auto batch = log_.rbegin(); batch != log_.rend() && batch->sequence > settled_; ++batch) {
    batch->redo = {};
    batch->erased.reset();
    batch->undo = {};
  }
  settled_ = synced_;
}

// What leaves the log counts as written to its place on the disk; a failed batch that leaves it is gone.
void MemoryEngine::TrimLog() {
  while (log_.size() > options_.log_batches_max) {
    log_floor_ = log_.front().sequence;
    lurking_ -= !log_.front().applied;
    synced_ = std::max(synced_, log_floor_);
    log_.pop_front();
  }
}

}  // namespace gyre
