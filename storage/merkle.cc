// Arithmetic of the tree of sums, and the set of leaves in doubt.
#include "storage/merkle.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace gyre {

void LeafSet::Insert(uint32_t leaf) {
  assert(leaf < kMerkleLeaves);
  size_ += !Contains(leaf);
  words_[leaf / 64] |= uint64_t{1} << (leaf % 64);
}

void LeafSet::Erase(uint32_t leaf) {
  assert(leaf < kMerkleLeaves);
  size_ -= Contains(leaf);
  words_[leaf / 64] &= ~(uint64_t{1} << (leaf % 64));
}

void LeafSet::InsertAll() {
  std::fill(words_.begin(), words_.end(), ~uint64_t{0});
  size_ = kMerkleLeaves;
}

void LeafSet::Clear() {
  if (empty()) return;
  std::fill(words_.begin(), words_.end(), 0);
  size_ = 0;
}

uint32_t LeafSet::FirstOf(LeafRange range) const {
  assert(range.last <= kMerkleLeaves);
  if (empty() || range.first >= range.last) return range.last;
  uint32_t word = range.first / 64;
  uint64_t bits = words_[word] & (~uint64_t{0} << (range.first % 64));
  while (bits == 0) {
    if (++word * 64 >= range.last) return range.last;
    bits = words_[word];
  }
  return std::min(range.last, word * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
}

MerkleTree::MerkleTree() : nodes_(kLevelBegin[kLevels - 1] + kMerkleLeaves) {}

void MerkleTree::Add(uint32_t leaf, const RowHash& delta) {
  assert(leaf < kMerkleLeaves);
  uint32_t index = leaf;
  for (int level = kLevels - 1; level >= 0; --level, index /= kFanOut)
    nodes_[kLevelBegin[level] + index] += delta;
}

void MerkleTree::Settle(uint32_t leaf, const RowHash& exact) {
  assert(leaf < kMerkleLeaves);
  RowHash delta = exact;
  delta -= nodes_[kLevelBegin[kLevels - 1] + leaf];
  Add(leaf, delta);
  in_doubt_.Erase(leaf);
}

std::optional<RowHash> MerkleTree::SumOfLeaves(LeafRange leaves) const {
  assert(leaves.first <= leaves.last);
  assert(leaves.last <= kMerkleLeaves);
  if (in_doubt_.FirstOf(leaves) < leaves.last) return std::nullopt;
  RowHash sum;
  // From the leaves up: what sticks out of whole parents on either side is summed here, the rest one level
  // higher.
  uint32_t first = leaves.first;
  uint32_t last = leaves.last;
  for (int level = kLevels - 1; first < last; --level, first /= kFanOut, last /= kFanOut) {
    assert(level >= 0);
    const RowHash* nodes = &nodes_[kLevelBegin[level]];
    while (first < last && first % kFanOut != 0) sum += nodes[first++];
    while (first < last && last % kFanOut != 0) sum += nodes[--last];
  }
  return sum;
}

std::optional<RowHash> MerkleTree::SumOfNode(int level, uint32_t index) const {
  assert(level >= 0);
  assert(level < kLevels);
  const uint32_t width = kMerkleLeaves >> (4 * level);
  assert(index < kMerkleLeaves / width);
  const LeafRange leaves{.first = index * width, .last = (index + 1) * width};
  if (in_doubt_.FirstOf(leaves) < leaves.last) return std::nullopt;
  return nodes_[kLevelBegin[level] + index];
}

}  // namespace gyre
