// Who waits for the answers to tickets.
#include "server/rpc/calls.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gyre {

uint64_t Calls::Add(std::shared_ptr<Waiter> waiter) {
  absl::MutexLock lock(&mutex_);
  const uint64_t number = next_++;
  waiters_[number] = std::move(waiter);
  return number;
}

void Calls::Remove(uint64_t number) {
  std::shared_ptr<Waiter> last;  // dies outside the lock
  absl::MutexLock lock(&mutex_);
  const auto it = waiters_.find(number);
  if (it == waiters_.end()) return;
  last = std::move(it->second);
  waiters_.erase(it);
}

void Calls::Answer(std::vector<Outbox::Reply> replies) {
  const auto number = [](const Outbox::Reply& reply) { return reply.ticket.value >> kPlaceBits; };
  std::stable_sort(replies.begin(), replies.end(),
                   [&](const Outbox::Reply& a, const Outbox::Reply& b) { return number(a) < number(b); });
  for (auto begin = replies.begin(); begin != replies.end();) {
    const auto end = std::find_if(begin, replies.end(),
                                  [&](const Outbox::Reply& r) { return number(r) != number(*begin); });
    std::shared_ptr<Waiter> waiter;
    {
      absl::MutexLock lock(&mutex_);
      const auto it = waiters_.find(number(*begin));
      if (it != waiters_.end()) waiter = it->second;
    }
    if (waiter) waiter->Answered({std::make_move_iterator(begin), std::make_move_iterator(end)});
    begin = end;
  }
}

}  // namespace gyre
