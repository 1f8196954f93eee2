// The rows of a node together with the Merkle sums over them: what a lane commits to.
//
// Threads:   Read and ReadRows may be called from any thread. Everything else is called by one thread at a time (the
//            lane's commit thread), so that sums and rows change in one order.
// Errors:    as Engine.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/engine.h"
#include "storage/merkle.h"

namespace gyre {

// One change of one row. Several changes of one row in one commit are applied in order.
struct RowWrite {
  std::string row_key;
  RecordBytes before;  // nullptr: there was no row
  RecordBytes after;   // nullptr: the row is erased
};

class Store {
 public:
  // Opens the sums of the last life: the saved snapshot plus the notes of the log after it. Where that cannot be proven
  // complete, the leaves are in doubt and RecountSome() settles them while the node serves. Returns quickly either way.
  // The engine must outlive the store.
  explicit Store(Engine& engine);

  // One batch, its Merkle deltas included, as durable as asked. On failure nothing is applied (and the touched leaves are in
  // doubt until recounted).
  absl::Status Commit(std::span<const RowWrite> rows, std::span<const EngineWrite> others, Durability durability);

  // The rows of `row_keys` as committed, in order; nullptr for one that is not there.
  std::vector<absl::StatusOr<RecordBytes>> ReadRows(std::span<const std::string> row_keys);

  // Recounts leaves in doubt until about `rows_max` rows were read. True while more are left.
  bool RecountSome(size_t rows_max);
  bool InDoubt(uint32_t keyspace) const;

  // Saves the sums, so that the next start replays little. Called now and then, and at a clean end.
  absl::Status SaveSums();

  // The sum of the rows with token in (begin, end] (begin == end: the whole ring). UNAVAILABLE while a leaf of it is in
  // doubt. Slices cut by the edges are summed from rows.
  absl::StatusOr<RowHash> SumOfRange(uint32_t keyspace, uint64_t begin, uint64_t end);

  // Recounts everything from disk and compares with the sums. Bounded memory.
  struct Verification {
    uint64_t leaves = 0;
    uint64_t rows = 0;
    uint64_t differences = 0;   // leaves whose sum was wrong (now corrected)
  };
  absl::StatusOr<Verification> Verify();

  // Forgets all rows and sums of a keyspace.
  absl::Status DropKeyspace(uint32_t keyspace);

  Engine& engine() { return engine_; }

 private:
  Engine& engine_;
  std::map<uint32_t, std::unique_ptr<MerkleTree>> trees_;  // by keyspace
};

}  // namespace gyre
