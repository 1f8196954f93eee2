// Numbers of a lane that other threads may look at. Written by the lane's thread, one by one.
#pragma once

#include <absl/synchronization/mutex.h>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ring/ring.h"
#include "ring/token_range.h"
#include "server/core/layouts.h"

namespace gyre {

// Hints of one node for another.
struct HintStats {
  uint64_t hints = 0;
  uint64_t bytes = 0;
  uint64_t delivered = 0;  // since the start; rising
  bool operator==(const HintStats&) const = default;
};

// A member that holds the stable cut back, and why.
struct CutBlockerStats {
  NodeId node;
  std::string why;
};

// One range that this node fetches because the newest layout gives it.
struct MoveStats {
  enum class State : uint8_t { kWaiting, kRunning, kPaused, kDone };
  NodeId from;
  uint32_t keyspace = 0;
  TokenRange range;
  uint64_t keys_done = 0;
  uint64_t bytes_done = 0;
  double fraction_done = 0;  // of the range's tokens
  State state = State::kWaiting;
};

struct LaneStats {
  using Moves = std::vector<MoveStats>;
  Moves moves() const {
    absl::MutexLock lock(&mutex);
    return moves_of_node;
  }
  void SetMoves(Moves next) {
    absl::MutexLock lock(&mutex);
    moves_of_node = std::move(next);
  }
  LaneSteps steps() const {
    absl::MutexLock lock(&mutex);
    return lane_steps;
  }
  void SetSteps(LaneSteps next) {
    absl::MutexLock lock(&mutex);
    lane_steps = next;
  }

  using Blockers = std::vector<CutBlockerStats>;
  Blockers cut_blockers() const {
    absl::MutexLock lock(&mutex);
    return blockers;
  }
  void SetCutBlockers(Blockers next) {
    absl::MutexLock lock(&mutex);
    blockers = std::move(next);
  }

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
  Blockers blockers ABSL_GUARDED_BY(mutex);
  Moves moves_of_node ABSL_GUARDED_BY(mutex);
  LaneSteps lane_steps ABSL_GUARDED_BY(mutex);
  std::atomic<uint64_t> move_bytes_received = 0;
  std::atomic<uint64_t> move_keys_received = 0;
  std::atomic<uint64_t> move_bytes_per_second = 0;
  std::atomic<bool> moves_paused = false;
  std::atomic<uint64_t> stable_cut_ms = 0;   // since 1970; what all members hold
  std::atomic<int64_t> clock_offset_ms = 0;  // ahead of the median of the members' clocks
  std::atomic<bool> clock_is_off = false;    // by more than clocks may be apart
  std::atomic<uint64_t> records_from_the_future = 0;
  std::atomic<bool> filling = false;
  std::atomic<bool> dropping = false;  // what the layout gives to this node no more
  std::atomic<uint64_t> hints_held = 0;
  std::atomic<uint64_t> hints_refused = 0;
  std::atomic<bool> hints_counted = false;  // what was on disk at the start is in hints_held
  std::atomic<uint64_t> calls_in_flight = 0;
  std::atomic<uint64_t> peer_messages_refused = 0;  // well-formed nonsense
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
