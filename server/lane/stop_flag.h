// A flag that is set once and that a thread can wait for.
#pragma once

#include <absl/synchronization/notification.h>
#include <mutex>

namespace gyre {

class StopFlag {
 public:
  void Set() {
    std::call_once(once_, [this] { set_.Notify(); });
  }
  explicit operator bool() const { return set_.HasBeenNotified(); }
  // Returns early when it is set.
  void WaitFor(absl::Duration patience) const { set_.WaitForNotificationWithTimeout(patience); }

 private:
  std::once_flag once_;
  absl::Notification set_;
};

}  // namespace gyre
