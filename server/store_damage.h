// The damage that was met in a node's store. It outlives the node, which is started anew because of it.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <atomic>
#include <cstdint>

namespace gyre {

// Threads: any.
class StoreDamage {
 public:
  // REQUIRES: `what` is DATA_LOSS.
  void Met(const absl::Status& what) {
    met_.fetch_add(1, std::memory_order_relaxed);
    const absl::MutexLock lock(&mutex_);
    if (first_.ok()) first_ = what;
  }
  // How often, since the process started.
  uint64_t met() const { return met_.load(std::memory_order_relaxed); }

  // What was met first in the store that is in use; OK: nothing.
  absl::Status first() const {
    const absl::MutexLock lock(&mutex_);
    return first_;
  }
  // The store that is in use is another one now.
  void Forget() {
    const absl::MutexLock lock(&mutex_);
    first_ = absl::OkStatus();
  }

 private:
  std::atomic<uint64_t> met_ = 0;
  mutable absl::Mutex mutex_;
  absl::Status first_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gyre
