// Unary calls that wait for the lane.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/synchronization/mutex.h>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "server/core/coordinator_ops.h"
#include "server/rpc/calls.h"

namespace gyre {

// Threads: thread-safe. Each `done` is called once: on the lane's thread, or by End.
class UnaryCalls : public Waiter {
 public:
  using Done = std::function<void(CallResult)>;

  // Where the answer goes, or nullopt once ended.
  std::optional<uint32_t> Add(Done done, bool is_write) {
    absl::MutexLock lock(&mutex_);
    if (ended_) return std::nullopt;
    waiting_[next_] = {std::move(done), is_write};
    return next_++;
  }

  // Answers all that wait, and takes no more: nobody is left who would.
  void End() {
    absl::flat_hash_map<uint32_t, Waiting> left;
    {
      absl::MutexLock lock(&mutex_);
      ended_ = true;
      left.swap(waiting_);
    }
    for (auto& [place, waiting] : left) {
      waiting.done(
          {.status = waiting.is_write ? OutcomeUnknown("this node is shutting down") : ShuttingDown()});
    }
  }

  static absl::Status ShuttingDown() { return absl::UnavailableError("this node is shutting down"); }

  void Answered(std::vector<Outbox::Reply> replies) override {
    for (Outbox::Reply& reply : replies) {
      Done done;
      {
        absl::MutexLock lock(&mutex_);
        const auto it = waiting_.find(Calls::PlaceOf(reply.ticket));
        if (it == waiting_.end()) continue;
        done = std::move(it->second.done);
        waiting_.erase(it);
      }
      done(std::move(reply.result));
    }
  }

 private:
  struct Waiting {
    Done done;
    bool is_write = false;
  };

  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint32_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gyre
