// A pause between two looks at a cluster.
#pragma once

#include <absl/synchronization/notification.h>
#include <absl/time/time.h>

namespace gyre::cli {

inline void Pause(absl::Duration duration) { absl::Notification().WaitForNotificationWithTimeout(duration); }

}  // namespace gyre::cli
