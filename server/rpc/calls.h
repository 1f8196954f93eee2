// Who waits for the answers to tickets: sessions, and unary calls.
//
// A ticket names a waiter and a place in it, so that the lane can answer a whole batch with one look-up per
// waiter. Threads: thread-safe.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/synchronization/mutex.h>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/core/message.h"

namespace gyre {

// Told the results of its own calls, on the lane's thread. Must not block.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void Answered(std::vector<Outbox::Reply> replies) = 0;
};

class Calls {
 public:
  static constexpr int kPlaceBits = 32;

  // `waiter` is kept until Remove. Returns its number.
  uint64_t Add(std::shared_ptr<Waiter> waiter);
  // Answers that come later are dropped.
  void Remove(uint64_t number);

  static Ticket TicketFor(uint64_t waiter, uint32_t place) { return {waiter << kPlaceBits | place}; }
  static uint32_t PlaceOf(Ticket ticket) { return static_cast<uint32_t>(ticket.value); }

  // Hands each reply to the one who waits for it.
  void Answer(std::vector<Outbox::Reply> replies);

 private:
  absl::Mutex mutex_;
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Waiter>> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gyre
