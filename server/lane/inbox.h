// An inbox: what other threads push, one thread drains. Bounded by what the pushers are allowed to have under
// way.
#pragma once

#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <iterator>
#include <utility>
#include <vector>

namespace gyre {

template <typename T>
class Inbox {
 public:
  void Push(T item) {
    absl::MutexLock lock(&mutex_);
    items_.push_back(std::move(item));
  }

  void PushAll(std::vector<T> items) {
    absl::MutexLock lock(&mutex_);
    if (items_.empty()) {
      items_ = std::move(items);
    } else {
      std::move(items.begin(), items.end(), std::back_inserter(items_));
    }
  }

  // After Close, Drain returns at once; what is pushed later is still kept for it.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

  // Appends everything that waits to `out`; waits for something until `deadline`. False once the inbox is
  // closed.
  bool Drain(absl::Time deadline, std::vector<T>& out) {
    absl::MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !items_.empty(); };
    mutex_.AwaitWithDeadline(absl::Condition(&ready), deadline);
    Take(out);
    return !closed_;
  }

  // Appends what comes until `deadline`, or until `out` has `count`.
  void Gather(absl::Time deadline, size_t count, std::vector<T>& out) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return closed_ || items_.size() + out.size() >= count;
    };
    mutex_.AwaitWithDeadline(absl::Condition(&enough), deadline);
    Take(out);
  }

  // As Drain, for what still arrives after Close.
  void DrainLate(absl::Time deadline, std::vector<T>& out) {
    absl::MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !items_.empty(); };
    mutex_.AwaitWithDeadline(absl::Condition(&ready), deadline);
    Take(out);
  }

 private:
  void Take(std::vector<T>& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (out.empty()) {
      out.swap(items_);
    } else {
      std::move(items_.begin(), items_.end(), std::back_inserter(out));
      items_.clear();
    }
  }

  absl::Mutex mutex_;
  std::vector<T> items_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gyre
