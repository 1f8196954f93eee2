// How many rows a keyspace has, and their bytes: counted from the disk once, then kept by every commit.
//
// After a start the leaves are read in an order that is spread over the ring. When a sample is large enough
// the rest is taken to be alike, which is right to within some 2 %; a keyspace with no more rows than the
// sample is counted exactly. Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "storage/format/row_totals.h"
#include "storage/merkle.h"

namespace gyre {

class RowCensus {
 public:
  static constexpr uint64_t kSampleRows = 16384;
  static constexpr uint32_t kSampleLeaves = 64;  // some lie half outside of what the node holds

  // nullopt while it is counted for the first time.
  std::optional<RowTotals> totals() const;

  // There are no rows.
  void StartEmpty();
  // To be counted anew. What was known stays until that is done.
  void StartCount();
  bool counting() const { return counting_; }

  // What a commit did to the rows of a leaf.
  struct Change {
    int64_t rows = 0;
    int64_t bytes = 0;
    bool operator==(const Change&) const = default;
  };
  void Apply(uint32_t leaf, const Change& change);

  // The next leaf to be read and told to Count; nullopt when the count is complete. `tree` says which leaves
  // have rows. REQUIRES: counting().
  std::optional<uint32_t> NextLeaf(const MerkleTree& tree);
  void Count(uint32_t leaf, const RowTotals& totals);

 private:
  static bool HasRows(const MerkleTree& tree, uint32_t leaf);
  void Finish(const MerkleTree& tree);

  bool known_ = false;
  Change totals_;
  bool counting_ = true;
  uint32_t next_ = 0;           // place in the order in which leaves are read
  LeafSet seen_;                // read, or found without rows
  Change sample_;               // what is in them
  uint64_t sample_rows_ = 0;    // that were read
  uint32_t sample_leaves_ = 0;  // the same
};

}  // namespace gyre
