// Sums over the rows of one keyspace: a fixed 16-ary tree over the token space.
//
// A leaf is the sum, modulo 2^128, of the hashes of all rows in one of 65,536 equal slices of tokens; every
// other node is the sum of its 16 children. So the tree depends on the rows alone: not on the order of their
// changes, the ring or the members. A leaf that may be wrong is in doubt, and no sum over it is given out.
//
// Threads: one at a time. Memory: about 1.1 MiB a tree, whatever it sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "storage/format/record_codec.h"

namespace gyre {

constexpr uint32_t kMerkleLeaves = 1u << 16;

// [first, last)
struct LeafRange {
  uint32_t first = 0;
  uint32_t last = kMerkleLeaves;
};

// A set of leaves.
class LeafSet {
 public:
  LeafSet() : words_(kMerkleLeaves / 64) {}

  bool Contains(uint32_t leaf) const { return (words_[leaf / 64] >> (leaf % 64)) & 1; }
  void Insert(uint32_t leaf);
  void Erase(uint32_t leaf);
  void InsertAll();
  void Clear();
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // The first member of `range`; range.last when there is none.
  uint32_t FirstOf(LeafRange range) const;
  // The first member at or behind `leaf`; kMerkleLeaves when there is none.
  uint32_t Next(uint32_t leaf) const { return FirstOf({.first = leaf, .last = kMerkleLeaves}); }

 private:
  std::vector<uint64_t> words_;
  size_t size_ = 0;
};

class MerkleTree {
 public:
  static constexpr int kLevels = 5;  // level 0 is the root, level 4 the leaves; level n has 16^n nodes
  static constexpr uint32_t kFanOut = 16;

  static constexpr uint32_t LeafOf(uint64_t token) { return static_cast<uint32_t>(token >> 48); }
  // The first token of a leaf. REQUIRES: leaf < kMerkleLeaves.
  static constexpr uint64_t FloorOf(uint32_t leaf) { return uint64_t{leaf} << 48; }

  // The sums of no rows.
  MerkleTree();

  // Adds to a leaf. What was taken away is added as its negative (RowHash{} - hash). A leaf in doubt stays
  // so.
  void Add(uint32_t leaf, const RowHash& delta);

  // Declares the exact sum of a leaf, which ends its doubt.
  void Settle(uint32_t leaf, const RowHash& exact);
  void Doubt(uint32_t leaf) { in_doubt_.Insert(leaf); }
  void DoubtAll() { in_doubt_.InsertAll(); }
  const LeafSet& in_doubt() const { return in_doubt_; }

  // The sum of a run of leaves: about a hundred additions at most. nullopt when one of them is in doubt.
  std::optional<RowHash> SumOfLeaves(LeafRange leaves) const;
  // One node, for walks from the top: node `index` of `level` has the children kFanOut * index + 0..15 of
  // level + 1.
  std::optional<RowHash> SumOfNode(int level, uint32_t index) const;

 private:
  static constexpr size_t kLevelBegin[kLevels] = {0, 1, 17, 273, 4369};  // (16^n - 1) / 15
  std::vector<RowHash> nodes_;                                           // level by level, the root first
  LeafSet in_doubt_;
};

}  // namespace gyre
