// A durable, ordered map from storage keys to bytes, in a few tables.
//
// Threads:   every method may be called from any thread at any time; Apply from one thread at a time.
// Errors:    DATA_LOSS: the bytes on disk fail their checksum; do not retry, repair from a replica.
//            RESOURCE_EXHAUSTED: the disk is full; reads go on, writes resume when there is space again.
//            UNAVAILABLE: the disk refuses (read-only, I/O error). NOT_FOUND from Get and MultiGet only.
//            Nothing else is returned.
// Ownership: the engine copies what it is given; what it returns belongs to the caller.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/format/record_codec.h"

namespace gyre {

enum class Table : uint8_t { kRows = 0, kHints = 1, kMeta = 2, kCollect = 3 };
constexpr int kTables = 4;

enum class Durability : uint8_t {
  kDisk,    // survives loss of power once Apply returned
  kMemory,  // survives a crash of this process, not of the machine
};

// One change. `value` == nullptr erases.
struct EngineWrite {
  Table table = Table::kRows;
  std::string key;
  RecordBytes value;
};

// [begin, end); an empty `end` means to the end of the table.
struct KeyRange {
  std::string begin;
  std::string end;
};

// All tables as they were at one moment.
//
// Threads: as Engine. Errors: as Engine, and ABORTED once the engine has let go of that moment (it was opened
// anew after a full disk). Must not outlive its engine, which keeps on disk what the moment needs.
class EngineSnapshot {
 public:
  virtual ~EngineSnapshot() = default;
  virtual absl::StatusOr<std::string> Get(Table table, std::string_view key) = 0;
  // As Engine::Scan. Holds up Engine::Resume while it lasts: so no longer than `visit` can go on at once.
  virtual absl::Status Scan(Table table, const KeyRange& range,
                            absl::FunctionRef<bool(std::string_view key, std::string_view value)> visit) = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual absl::StatusOr<std::string> Get(Table table, std::string_view key) = 0;

  // As Get for each key, in one pass over the disk. Results in the order of `keys`.
  virtual std::vector<absl::StatusOr<std::string>> MultiGet(Table table,
                                                            std::span<const std::string> keys) = 0;

  // Applies all of `writes` in order, or none. `note` is kept in the log beside them and handed back by
  // ReplayNotes. After a failure nothing of the batch is seen, but after a crash the whole batch (note
  // included) may turn up, at its place in the log.
  // REQUIRES: `writes` is not empty.
  virtual absl::Status Apply(std::span<const EngineWrite> writes, Durability durability,
                             std::string_view note) = 0;

  // Makes all batches applied so far survive loss of power.
  virtual absl::Status Sync() = 0;

  // Calls `visit` for each entry of `range`, in key order, until it returns false. Sees one snapshot. The
  // views passed to `visit` die when it returns.
  // REQUIRES: `visit` does not call the engine.
  virtual absl::Status Scan(Table table, const KeyRange& range,
                            absl::FunctionRef<bool(std::string_view key, std::string_view value)> visit) = 0;

  // This moment. Cheap, whatever the tables hold.
  virtual absl::StatusOr<std::unique_ptr<EngineSnapshot>> Snapshot() = 0;

  // Erases a whole range, and survives loss of power once it returned: cheap, whatever it holds. After a
  // failure, or a crash in the middle, the range holds an unknown part of what it ever held.
  virtual absl::Status EraseRange(Table table, const KeyRange& range) = 0;

  // The number of the last batch applied; rises with every one.
  virtual uint64_t LastSequence() const = 0;

  // Calls `visit` with the note (unless it is empty) of each batch after `sequence`, in order, up to the
  // newest. `sequence` is one that LastSequence returned, or 0. DATA_LOSS when the log no longer reaches back
  // without a gap; then some notes may have been visited before it showed.
  // REQUIRES: `visit` does not call the engine.
  virtual absl::Status ReplayNotes(uint64_t sequence,
                                   absl::FunctionRef<void(std::string_view note)> visit) = 0;

  // Estimates, cheap enough to ask every second.
  struct Size {
    uint64_t keys = 0;   // rows, tombstones included
    uint64_t bytes = 0;  // on disk
  };
  virtual Size EstimateSize() = 0;

  // Tries to leave the state in which writes fail after a full disk. OK when writes may go on.
  virtual absl::Status Resume() = 0;
};

}  // namespace gyre
