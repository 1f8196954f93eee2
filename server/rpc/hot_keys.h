// The keys that clients ask this node for most, told from a sample of their calls.
//
// The sample is counted in a fixed number of places (Metwally et al., "Efficient computation of frequent and
// top-k elements in data streams", 2005): a key that makes up more than 1/kPlaces of the calls always has
// one. Threads: any.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/synchronization/mutex.h>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/core/call.h"

namespace gyre {

class HotKeys {
 public:
  static constexpr uint64_t kSampleEvery = 32;  // one call of so many, by chance
  static constexpr size_t kPlaces = 256;
  // After so many sampled calls all counts are halved, so that what was hot yesterday goes.
  static constexpr uint64_t kHalveAfter = 65536;

  // Both in calls, estimated from the sample.
  struct Hot {
    std::string keyspace;
    std::string key;
    uint64_t calls = 0;
    uint64_t too_many = 0;  // by at most so many it may be too high
  };
  struct Report {
    std::vector<Hot> keys;  // the hottest first
    uint64_t calls = 0;     // of all keys
  };

  // A call with a key is on its way; others are not counted.
  void Note(const Call& call);
  Report Look() const;

 private:
  struct Count {
    uint64_t calls = 0;
    uint64_t too_many = 0;
  };
  using Key = std::pair<std::string, std::string>;  // keyspace, key

  void Add(const std::string& keyspace, const std::string& key);
  void Halve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<uint64_t> calls_{0};
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Key, Count> counts_ ABSL_GUARDED_BY(mutex_);
  uint64_t sampled_ ABSL_GUARDED_BY(mutex_) = 0;  // halved with the counts
  uint64_t until_halved_ ABSL_GUARDED_BY(mutex_) = kHalveAfter;
};

}  // namespace gyre
