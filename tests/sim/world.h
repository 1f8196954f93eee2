// The world of one simulation: virtual time, chance, what is to happen, the trace and the digest.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "server/core/time.h"
#include "tests/sim/random.h"

namespace gyre::sim {

// What is counted, so that a run in which nothing happened does not pass for a good one.
enum class Count : uint8_t {
  kOk,
  kRefused,
  kUnknown,
  kReads,
  kScans,
  kRetries,
  kFallbacks,
  kHints,
  kLost,
  kDoubled,
  kCrashes,
  kDisksLost,
  kPartitions,
  kPauses,
  kClockJumps,
  kCommitsFailed,
  kReadsFailed,
  kDiskFull,
  kLayouts,
  kMovements,
  kAborts,
  kNodesRemoved,
  kCollected,
  kTurns,
};
inline constexpr std::array kCountNames = {"ok",
                                           "refused",
                                           "unknown",
                                           "reads",
                                           "scans",
                                           "retries",
                                           "writes on fallbacks",
                                           "hints delivered",
                                           "lost",
                                           "doubled",
                                           "crashes",
                                           "disks lost",
                                           "partitions",
                                           "pauses",
                                           "clock jumps",
                                           "commits failed",
                                           "reads failed",
                                           "disks full",
                                           "layouts",
                                           "movements",
                                           "aborts",
                                           "nodes removed",
                                           "records collected",
                                           "turns"};
using Counts = std::array<uint64_t, kCountNames.size()>;

class World {
 public:
  World(uint64_t seed, bool tracing) : random_(seed), tracing_(tracing) {}

  Micros now() const { return now_; }
  Random& random() { return random_; }

  // Events of one moment happen in the order in which they were asked for.
  void At(Micros when, std::function<void()> what) {
    events_.push({std::max(when, now_), ++sequence_, std::move(what)});
  }
  void In(Micros delay, std::function<void()> what) { At(now_ + delay, std::move(what)); }
  // Runs what is due until `end`, or until something is violated.
  void RunUntil(Micros end) {
    while (ok() && !events_.empty() && events_.top().at <= end) {
      Event event = std::move(const_cast<Event&>(events_.top()));
      events_.pop();
      now_ = event.at;
      event.what();
    }
    now_ = std::max(now_, end);
  }

  // `text` returns a line; it is called only when somebody reads.
  void Trace(const std::string& who, auto text) {
    if (tracing_) Print(who, text());
  }
  void Violated(const std::string& sentence);
  bool ok() const { return violations_.empty(); }
  const std::vector<std::string>& violations() const { return violations_; }

  // Of everything that can be observed from outside the nodes.
  void Observe(uint64_t fact) {
    digest_ = (digest_ ^ fact) * 0x9fb21c651e98df25;
    digest_ ^= digest_ >> 32;
  }
  uint64_t digest() const { return digest_; }

  void Add(Count what, uint64_t n = 1) { counts_[static_cast<size_t>(what)] += n; }
  const Counts& counts() const { return counts_; }

 private:
  struct Event {
    Micros at;
    uint64_t sequence = 0;
    std::function<void()> what;
    bool operator>(const Event& other) const {
      return std::pair(at, sequence) > std::pair(other.at, other.sequence);
    }
  };
  void Print(const std::string& who, const std::string& text) const;

  Random random_;
  bool tracing_;
  Micros now_;
  uint64_t sequence_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t digest_ = 0;
  Counts counts_ = {};
  std::vector<std::string> violations_;
};

}  // namespace gyre::sim
