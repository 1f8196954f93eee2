// A histogram of latencies: 16 buckets in each doubling, so a quantile is right to within 6 %.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gyre::cli {

// Threads: any.
class Histogram {
 public:
  void Add(uint64_t value) {
    buckets_[BucketOf(value)].fetch_add(1, std::memory_order_relaxed);
    uint64_t max = max_.load(std::memory_order_relaxed);
    while (value > max && !max_.compare_exchange_weak(max, value, std::memory_order_relaxed)) continue;
  }
  uint64_t max() const { return max_.load(std::memory_order_relaxed); }
  // The largest value of the bucket that this fraction of all values does not lie above; 0 when there are
  // none. REQUIRES: 0 < fraction <= 1.
  uint64_t Quantile(double fraction) const;
  // The largest value of each bucket that is not empty, and how many it holds; ascending.
  std::vector<std::pair<uint64_t, uint64_t>> Buckets() const;

 private:
  static constexpr int kBits = 4;
  static constexpr uint64_t kParts = 1 << kBits;

  static size_t BucketOf(uint64_t value) {
    if (value < kParts) return static_cast<size_t>(value);
    const int doubling = std::bit_width(value) - kBits - 1;
    return static_cast<size_t>(doubling) * kParts + static_cast<size_t>(value >> doubling);
  }
  static uint64_t LargestOf(size_t bucket) {
    if (bucket < 2 * kParts) return bucket;
    const size_t doubling = bucket / kParts - 1;
    return ((bucket % kParts + kParts + 1) << doubling) - 1;
  }

  std::array<std::atomic<uint64_t>, 64 * kParts> buckets_{};
  std::atomic<uint64_t> max_{0};
};

}  // namespace gyre::cli
