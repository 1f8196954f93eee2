// Numbers of a lane that other threads may look at. Written by the lane's thread, one by one.
#pragma once

#include <atomic>
#include <cstdint>

namespace gyre {

struct LaneStats {
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
