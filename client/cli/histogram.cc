// Quantiles of a histogram.
#include "client/cli/histogram.h"

#include <algorithm>
#include <cmath>

namespace gyre::cli {

uint64_t Histogram::Quantile(double fraction) const {
  uint64_t total = 0;
  for (const std::atomic<uint64_t>& bucket : buckets_) total += bucket.load(std::memory_order_relaxed);
  if (total == 0) return 0;
  const auto wanted = static_cast<uint64_t>(std::ceil(static_cast<double>(total) * fraction));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i].load(std::memory_order_relaxed);
    if (seen >= wanted) return std::min(LargestOf(i), max());
  }
  return max();
}

std::vector<std::pair<uint64_t, uint64_t>> Histogram::Buckets() const {
  std::vector<std::pair<uint64_t, uint64_t>> buckets;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const uint64_t count = buckets_[i].load(std::memory_order_relaxed);
    if (count > 0) buckets.emplace_back(LargestOf(i), count);
  }
  return buckets;
}

}  // namespace gyre::cli
