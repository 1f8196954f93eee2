// The rows of a node together with the Merkle sums over them: what a lane commits to.
//
// Threads:   ReadRows may be called from any thread. Everything else is called by one thread at a time (the
//            lane's commit thread), so that sums and rows change in one order.
// Errors:    as Engine.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/engine.h"
#include "storage/merkle.h"
#include "storage/row_census.h"
#include "storage/sums_codec.h"

namespace gyre {

// Keys of Table::kMeta that hold the saved sums: this and the keyspace as eight hexadecimal digits.
constexpr std::string_view kMetaSums = "sums/";

// One change of one row. Several changes of one row in one commit are applied in order.
struct RowWrite {
  std::string row_key;
  RecordBytes before;  // nullptr: there was no row
  RecordBytes after;   // nullptr: the row is erased
};

class Store {
 public:
  // Opens the sums of the last life: the saved snapshot plus the notes of the log after it. Where that cannot
  // be proven complete, the leaves are in doubt and RecountSome() settles them while the node serves. Returns
  // quickly either way. The engine must outlive the store. Nobody else may change Table::kRows,
  // Table::kCollect or the keys kMetaSums of Table::kMeta.
  explicit Store(Engine& engine);

  // One batch, its Merkle deltas included, as durable as asked. On failure nothing is applied (and the
  // touched leaves are in doubt until recounted).
  // REQUIRES: row keys are whole (ParseRowKey); each `before` is what the row holds at that moment; `others`
  // are not rows.
  absl::Status Commit(std::span<const RowWrite> rows, std::span<const EngineWrite> others,
                      Durability durability);

  // The rows of `row_keys` as committed, in order; nullptr for one that is not there.
  std::vector<absl::StatusOr<RecordBytes>> ReadRows(std::span<const std::string> row_keys);

  // How many rows hold something that a stable cut will collect: tombstones, values that expire, superseded
  // retries. For people: a failed batch that turns up after a crash may make it wrong until it is counted
  // anew, which RecountSome does after a start and after each SaveSums. Any thread.
  uint64_t collectible() const { return collectible_.load(std::memory_order_relaxed); }

  // How many rows each keyspace has, and their bytes. Kept by every commit; after a start counted from disk
  // by RecountSome, where a large keyspace is estimated (row_census.h), and missing here until it is. Any
  // thread.
  std::map<uint32_t, RowTotals> totals() const {
    absl::MutexLock lock(&totals_mutex_);
    return totals_;
  }

  // Recounts leaves in doubt, and after a start what is collectible and how many rows there are, until about
  // `rows_max` rows were read (a leaf is always read whole). True while more are left that can be read: one
  // that cannot stays in doubt, and is tried again after the next SaveSums or Verify.
  bool RecountSome(size_t rows_max);
  bool InDoubt(uint32_t keyspace) const;

  // Saves the sums, so that the next start replays little. Called now and then, before the engine's log has
  // grown beyond what it keeps, and at a clean end.
  absl::Status SaveSums();
  // Bytes of rows and sums committed since SaveSums last succeeded: a measure of the log to replay.
  uint64_t bytes_since_save() const { return bytes_since_save_; }

  // The sum of the rows with token in (begin, end] (begin == end: the whole ring). UNAVAILABLE while a leaf
  // that lies wholly in it is in doubt. Slices cut by the edges are summed from rows.
  absl::StatusOr<RowHash> SumOfRange(uint32_t keyspace, uint64_t begin, uint64_t end);

  // The sums of a keyspace, to be walked from the top; nullptr when no row of it is known. Lives until
  // DropKeyspace.
  const MerkleTree* Tree(uint32_t keyspace) const;

  // Recounts everything from disk and compares with the sums. Bounded memory. A leaf that cannot be read is
  // put in doubt, and the first error returned after all others were compared.
  struct Verification {
    uint64_t leaves = 0;       // compared
    uint64_t rows = 0;         // read
    uint64_t differences = 0;  // leaves whose sum was wrong (now corrected); those in doubt are not counted
  };
  absl::StatusOr<Verification> Verify();

  // Forgets all rows and sums of a keyspace.
  absl::Status DropKeyspace(uint32_t keyspace);

  Engine& engine() { return engine_; }

 private:
  // The sums of one keyspace, and what is known about the leaves beyond them.
  struct Sums {
    std::unique_ptr<MerkleTree> tree = std::make_unique<MerkleTree>();
    bool saved = false;   // a snapshot from which the log leads to this tree is on disk
    LeafSet unannounced;  // the next note must put these in doubt: the log alone would lead to wrong sums
    LeafSet
        suspect;  // touched by a failed commit, which may turn up after a crash: in doubt for the next life
    LeafSet unreadable;  // could not be recounted
    RowCensus census;
  };
  using SumsMap = std::map<uint32_t, std::unique_ptr<Sums>>;

  struct Delta {
    uint32_t keyspace = 0;
    uint32_t leaf = 0;
    RowHash sum;
    RowCensus::Change change;
  };

  // By keyspace, the number up to which its snapshot holds all commits.
  using SnapshotNumbers = std::map<uint32_t, uint64_t>;

  SnapshotNumbers LoadSnapshots(SumsPosition& oldest);
  bool Replay(const SumsPosition& oldest, const SnapshotNumbers& numbers);
  bool ListKeyspaces(absl::FunctionRef<void(uint32_t keyspace)> visit);
  Sums& SumsOf(uint32_t keyspace);

  // Keeps Table::kCollect beside the rows: what `rows` change in it goes to `batch`.
  static void AddCollectKeys(std::span<const RowWrite> rows, std::vector<EngineWrite>& batch);
  void CountCollectKeys(std::span<const EngineWrite> applied);
  bool CountCollectible(size_t rows_max);
  void CountCollectibleAnew();
  uint64_t CountRows(uint32_t keyspace, Sums& sums, uint64_t cost_max);
  void PublishTotals(uint32_t keyspace);

  static std::vector<Delta> DeltasOf(std::span<const RowWrite> rows);
  SumsNote NoteOf(const std::vector<Delta>& deltas) const;
  void Committed(const std::vector<Delta>& deltas, const SumsNote& note);
  void Failed(const std::vector<Delta>& deltas);
  EngineWrite SnapshotOf(uint32_t keyspace, const Sums& sums) const;

  struct Count {
    absl::Status status;
    uint64_t rows = 0;
    uint32_t next = 0;  // the first leaf that was not counted
  };
  Count CountLeaves(uint32_t keyspace, LeafRange leaves, uint64_t rows_max,
                    absl::FunctionRef<void(uint32_t leaf, const RowHash& sum)> counted);
  uint64_t RecountRun(uint32_t keyspace, Sums& sums, uint32_t first, uint64_t rows_max);
  absl::Status VerifyKeyspace(uint32_t keyspace, Sums& sums, Verification& verification);

  // Tokens, both ends included.
  struct TokenSpan {
    uint64_t first = 0;
    uint64_t last = UINT64_MAX;
  };
  absl::StatusOr<RowHash> SumOfSpan(uint32_t keyspace, const MerkleTree& tree, TokenSpan span);
  absl::StatusOr<RowHash> SumOfRows(uint32_t keyspace, TokenSpan span);

  Engine& engine_;
  SumsMap sums_;                 // by keyspace
  bool all_listed_ = true;       // every keyspace with rows was found at the start
  uint64_t number_ = 0;          // of the last commit, failed or not
  uint64_t applied_number_ = 0;  // of the last one that did not fail
  uint64_t bytes_since_save_ = 0;
  std::atomic<uint64_t> collectible_ = 0;
  bool counting_ = true;    // what is collectible, from disk
  uint64_t counted_ = 0;    // so far
  std::string counted_to_;  // collect key up to which
  mutable absl::Mutex totals_mutex_;
  std::map<uint32_t, RowTotals> totals_ ABSL_GUARDED_BY(totals_mutex_);  // by keyspace
};

}  // namespace gyre
