// Numbers of a lane that other threads may look at. Written by the lane's thread, one by one.
#pragma once

#include <absl/synchronization/mutex.h>
#include <atomic>
#include <cstdint>
#include <map>

#include "ring/ring.h"

namespace gyre {

// Hints of one node for another.
struct HintStats {
  uint64_t hints = 0;
  uint64_t bytes = 0;
  uint64_t delivered = 0;  // since the start; rising
  bool operator==(const HintStats&) const = default;
};

struct LaneStats {
  using Hints = std::map<NodeId, HintStats>;  // by the node that they are for
  Hints hints() const {
    absl::MutexLock lock(&mutex);
    return hints_by_node;
  }
  void SetHints(Hints hints) {
    absl::MutexLock lock(&mutex);
    hints_by_node = std::move(hints);
  }

  mutable absl::Mutex mutex;
  Hints hints_by_node ABSL_GUARDED_BY(mutex);
  std::atomic<bool> filling = false;
  std::atomic<uint64_t> hints_held = 0;
  std::atomic<uint64_t> hints_refused = 0;
  std::atomic<bool> hints_counted = false;  // what was on disk at the start is in hints_held
  std::atomic<uint64_t> calls_in_flight = 0;
  // Anti-entropy, as in ExchangeCounters.
  std::atomic<uint64_t> exchange_rounds = 0;
  std::atomic<bool> exchange_busy = false;
  std::atomic<uint64_t> unequal_ranges = 0;
  std::atomic<uint64_t> ranges_compared = 0;
  std::atomic<uint64_t> records_compared = 0;
  std::atomic<uint64_t> records_sent = 0;
  std::atomic<uint64_t> repair_bytes_sent = 0;
  std::atomic<uint64_t> hash_bytes_sent = 0;
};

}  // namespace gyre
