// Counting leaves from their rows: to end doubt, to verify, and for ranges that cut leaves.
#include <algorithm>
#include <cassert>
#include <set>

#include "storage/format/row_key.h"
#include "storage/store.h"

namespace gyre {

// Calls `counted` with the sum of each leaf of `leaves`, in order, until at least `rows_max` rows were read
// and the leaf that held the last of them is whole. After an error the leaves before `next` are counted; that
// one may be unreadable.
Store::Count Store::CountLeaves(uint32_t keyspace, LeafRange leaves, uint64_t rows_max,
                                absl::FunctionRef<void(uint32_t leaf, const RowHash& sum)> counted) {
  assert(leaves.first < leaves.last);
  Count count{.status = absl::OkStatus(), .rows = 0, .next = leaves.first};
  RowHash sum;
  const auto count_until = [&](uint32_t leaf) {
    for (; count.next < leaf; ++count.next) {
      counted(count.next, sum);
      sum = RowHash{};
    }
  };
  bool stopped = false;
  const KeyRange range{
      .begin = RowKeyFloor(keyspace, MerkleTree::FloorOf(leaves.first)),
      .end = RowKeyCeiling(keyspace, MerkleTree::FloorOf(leaves.last - 1) | (UINT64_MAX >> 16))};
  count.status = engine_.Scan(Table::kRows, range, [&](std::string_view key, std::string_view record) {
    RowKeyParts parts;
    if (!ParseRowKey(key, parts)) return true;
    const uint32_t leaf = MerkleTree::LeafOf(parts.token);
    if (leaf != count.next) {
      count_until(leaf);
      stopped = count.rows >= rows_max;
      if (stopped) return false;
    }
    sum += HashRow(key, record);
    ++count.rows;
    return true;
  });
  if (count.status.ok() && !stopped) count_until(leaves.last);
  return count;
}

// Recounts the run of leaves in doubt that starts with `first`. Settles at least one leaf, or finds it
// unreadable. Returns the rows read.
uint64_t Store::RecountRun(uint32_t keyspace, Sums& sums, uint32_t first, uint64_t rows_max) {
  const auto settle = [&](uint32_t leaf, const RowHash& sum) { sums.tree->Settle(leaf, sum); };
  uint32_t last = first + 1;
  while (last < kMerkleLeaves && sums.tree->in_doubt().Contains(last) && !sums.unreadable.Contains(last))
    ++last;
  const Count run = CountLeaves(keyspace, {.first = first, .last = last}, rows_max, settle);
  if (run.status.ok()) return run.rows;
  // The error may lie in a later leaf than the one that was being read.
  const Count single = CountLeaves(keyspace, {.first = run.next, .last = run.next + 1}, rows_max, settle);
  if (!single.status.ok()) sums.unreadable.Insert(run.next);
  return run.rows + single.rows;
}

bool Store::RecountSome(size_t rows_max) {
  assert(rows_max > 0);
  if (CountCollectible(rows_max)) return true;
  uint64_t cost = 0;  // rows, and one for each seek
  for (auto& [keyspace, sums] : sums_) {
    const LeafSet& in_doubt = sums->tree->in_doubt();
    for (uint32_t leaf = in_doubt.Next(0); leaf < kMerkleLeaves; leaf = in_doubt.Next(leaf)) {
      if (sums->unreadable.Contains(leaf)) {
        ++leaf;
        continue;
      }
      if (cost >= rows_max) return true;
      cost += 1 + RecountRun(keyspace, *sums, leaf, rows_max - cost);
    }
  }
  for (auto& [keyspace, sums] : sums_) {
    if (!sums->census.counting()) continue;
    if (cost >= rows_max) return true;
    cost += CountRows(keyspace, *sums, rows_max - cost);
    if (sums->census.counting()) return true;
  }
  return false;
}

// Goes on with the census. Returns the rows read, and one for each seek.
uint64_t Store::CountRows(uint32_t keyspace, Sums& sums, uint64_t cost_max) {
  uint64_t cost = 0;
  while (cost < cost_max && sums.census.counting()) {
    const std::optional<uint32_t> leaf = sums.census.NextLeaf(*sums.tree);
    if (!leaf) break;
    RowTotals totals;
    const KeyRange range{.begin = RowKeyFloor(keyspace, MerkleTree::FloorOf(*leaf)),
                         .end = RowKeyCeiling(keyspace, MerkleTree::FloorOf(*leaf) | (UINT64_MAX >> 16))};
    const auto count = [&](std::string_view key, std::string_view record) {
      ++totals.rows;
      totals.bytes += key.size() + record.size();
      return true;
    };
    engine_.Scan(Table::kRows, range, count).IgnoreError();  // what cannot be read is not counted
    sums.census.Count(*leaf, totals);
    cost += 1 + totals.rows;
  }
  PublishTotals(keyspace);
  return cost;
}

void Store::PublishTotals(uint32_t keyspace) {
  const auto sums = sums_.find(keyspace);
  const std::optional<RowTotals> totals = sums == sums_.end() ? std::nullopt : sums->second->census.totals();
  absl::MutexLock lock(&totals_mutex_);
  if (totals) {
    totals_[keyspace] = *totals;
  } else {
    totals_.erase(keyspace);
  }
}

absl::StatusOr<Store::Verification> Store::Verify() {
  Verification verification;
  absl::Status first_error;
  all_listed_ = ListKeyspaces([this](uint32_t keyspace) { SumsOf(keyspace); });
  for (auto& [keyspace, sums] : sums_) {
    absl::Status status = VerifyKeyspace(keyspace, *sums, verification);
    if (first_error.ok()) first_error = std::move(status);
  }
  // What is on disk leads to the wrong sums. Should this fail, the next note says which leaves these are.
  if (verification.differences > 0) SaveSums().IgnoreError();
  if (!first_error.ok()) return first_error;
  return verification;
}

absl::Status Store::VerifyKeyspace(uint32_t keyspace, Sums& sums, Verification& verification) {
  MerkleTree& tree = *sums.tree;
  sums.unreadable.Clear();
  const auto compare = [&](uint32_t leaf, const RowHash& exact) {
    const std::optional<RowHash> claimed = tree.SumOfNode(MerkleTree::kLevels - 1, leaf);
    ++verification.leaves;
    if (claimed == exact) return;
    tree.Settle(leaf, exact);
    if (!claimed) return;
    ++verification.differences;
    sums.unannounced.Insert(leaf);
  };
  absl::Status first_error;
  for (uint32_t leaf = 0; leaf < kMerkleLeaves;) {
    const Count run = CountLeaves(keyspace, {.first = leaf, .last = kMerkleLeaves}, UINT64_MAX, compare);
    verification.rows += run.rows;
    leaf = run.next;
    if (run.status.ok()) continue;
    const Count single = CountLeaves(keyspace, {.first = leaf, .last = leaf + 1}, UINT64_MAX, compare);
    verification.rows += single.rows;
    if (!single.status.ok()) {
      if (first_error.ok()) first_error = single.status;
      tree.Doubt(leaf);
      sums.unreadable.Insert(leaf);
    }
    ++leaf;
  }
  return first_error;
}

absl::StatusOr<RowHash> Store::SumOfRange(uint32_t keyspace, uint64_t begin, uint64_t end) {
  const MerkleTree* tree = Tree(keyspace);
  if (tree == nullptr) {
    if (all_listed_) return RowHash{};
    tree = SumsOf(keyspace).tree.get();
  }
  if (begin == end) return SumOfSpan(keyspace, *tree, {});
  if (begin < end) return SumOfSpan(keyspace, *tree, {.first = begin + 1, .last = end});
  // Around the end of the ring: up to the last token, and on from the first.
  absl::StatusOr<RowHash> sum = SumOfSpan(keyspace, *tree, {.first = 0, .last = end});
  if (!sum.ok() || begin == UINT64_MAX) return sum;
  const absl::StatusOr<RowHash> upper = SumOfSpan(keyspace, *tree, {.first = begin + 1, .last = UINT64_MAX});
  if (!upper.ok()) return upper;
  *sum += *upper;
  return sum;
}

absl::StatusOr<RowHash> Store::SumOfSpan(uint32_t keyspace, const MerkleTree& tree, TokenSpan span) {
  assert(span.first <= span.last);
  constexpr uint64_t kWithinLeaf = UINT64_MAX >> 16;
  LeafRange whole{.first = MerkleTree::LeafOf(span.first), .last = MerkleTree::LeafOf(span.last) + 1};
  const bool cut_first = (span.first & kWithinLeaf) != 0;
  const bool cut_last = (span.last & kWithinLeaf) != kWithinLeaf;
  if (whole.last - whole.first == 1 && (cut_first || cut_last)) return SumOfRows(keyspace, span);
  if (cut_first) ++whole.first;
  if (cut_last) --whole.last;

  const std::optional<RowHash> inner = tree.SumOfLeaves(whole);
  if (!inner) {
    return absl::UnavailableError("Merkle sums of keyspace " + std::to_string(keyspace) +
                                  " are still being recounted from its rows; ask again later");
  }
  RowHash sum = *inner;
  if (cut_first) {
    const auto edge = SumOfRows(keyspace, {.first = span.first, .last = span.first | kWithinLeaf});
    if (!edge.ok()) return edge;
    sum += *edge;
  }
  if (cut_last) {
    const auto edge = SumOfRows(keyspace, {.first = span.last & ~kWithinLeaf, .last = span.last});
    if (!edge.ok()) return edge;
    sum += *edge;
  }
  return sum;
}

absl::StatusOr<RowHash> Store::SumOfRows(uint32_t keyspace, TokenSpan span) {
  RowHash sum;
  const KeyRange range{.begin = RowKeyFloor(keyspace, span.first), .end = RowKeyCeiling(keyspace, span.last)};
  const absl::Status status =
      engine_.Scan(Table::kRows, range, [&](std::string_view key, std::string_view record) {
        RowKeyParts parts;
        if (ParseRowKey(key, parts)) sum += HashRow(key, record);
        return true;
      });
  if (!status.ok()) return status;
  return sum;
}

}  // namespace gyre
