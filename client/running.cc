// A count, and a wait for zero.
#include "client/running.h"

#include <cassert>

namespace gyre {
inline namespace sdk {

void Running::Enter() {
  const std::lock_guard lock(mutex_);
  ++count_;
}

void Running::Leave() {
  const std::lock_guard lock(mutex_);
  assert(count_ > 0);
  if (--count_ == 0) idle_.notify_all();
}

bool Running::Wait(std::chrono::milliseconds bound) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, bound, [this] { return count_ == 0; });
}

}  // namespace sdk
}  // namespace gyre
