// Counting rows from a sample of leaves.
#include "storage/row_census.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace gyre {
namespace {

constexpr int kLeafBits = 16;
static_assert(kMerkleLeaves == 1u << kLeafBits);

// The bits of a number of 16 bits in reverse: counting up goes through all leaves, ever halfway between.
uint32_t Reversed(uint32_t number) {
  uint32_t reversed = 0;
  for (int bit = 0; bit < kLeafBits; ++bit) reversed |= ((number >> bit) & 1) << (kLeafBits - 1 - bit);
  return reversed;
}

uint64_t NotNegative(int64_t number) { return static_cast<uint64_t>(std::max<int64_t>(number, 0)); }

int64_t Scaled(int64_t number, double factor) { return std::llround(static_cast<double>(number) * factor); }

}  // namespace

std::optional<RowTotals> RowCensus::totals() const {
  if (!known_) return std::nullopt;
  return RowTotals{.rows = NotNegative(totals_.rows), .bytes = NotNegative(totals_.bytes)};
}

void RowCensus::StartEmpty() {
  StartCount();
  known_ = true;
  counting_ = false;
  totals_ = {};
}

void RowCensus::StartCount() {
  counting_ = true;
  next_ = 0;
  seen_.Clear();
  sample_ = {};
  sample_rows_ = 0;
  sample_leaves_ = 0;
}

void RowCensus::Apply(uint32_t leaf, const Change& change) {
  totals_.rows += change.rows;
  totals_.bytes += change.bytes;
  // What is not read yet will be met as it is on disk.
  if (!counting_ || !seen_.Contains(leaf)) return;
  sample_.rows += change.rows;
  sample_.bytes += change.bytes;
}

bool RowCensus::HasRows(const MerkleTree& tree, uint32_t leaf) {
  return tree.SumOfNode(MerkleTree::kLevels - 1, leaf) != RowHash{};  // or it is in doubt
}

std::optional<uint32_t> RowCensus::NextLeaf(const MerkleTree& tree) {
  assert(counting_);
  const bool enough = sample_rows_ >= kSampleRows && sample_leaves_ >= kSampleLeaves;
  for (; !enough && next_ < kMerkleLeaves; ++next_) {
    const uint32_t leaf = Reversed(next_);
    if (HasRows(tree, leaf)) return leaf;
    seen_.Insert(leaf);
  }
  Finish(tree);
  return std::nullopt;
}

void RowCensus::Count(uint32_t leaf, const RowTotals& totals) {
  assert(counting_);
  assert(leaf == Reversed(next_));
  ++next_;
  seen_.Insert(leaf);
  sample_.rows += static_cast<int64_t>(totals.rows);
  sample_.bytes += static_cast<int64_t>(totals.bytes);
  sample_rows_ += totals.rows;
  ++sample_leaves_;
}

void RowCensus::Finish(const MerkleTree& tree) {
  counting_ = false;
  known_ = true;
  totals_ = sample_;
  if (next_ == kMerkleLeaves) return;
  uint32_t all = 0;
  uint32_t seen = 0;
  for (uint32_t leaf = 0; leaf < kMerkleLeaves; ++leaf) {
    if (!HasRows(tree, leaf)) continue;
    ++all;
    if (seen_.Contains(leaf)) ++seen;
  }
  if (seen == 0) return;
  const double factor = static_cast<double>(all) / seen;
  totals_ = {.rows = Scaled(sample_.rows, factor), .bytes = Scaled(sample_.bytes, factor)};
}

}  // namespace gyre
