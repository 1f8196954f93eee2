// What gRPC has not finished yet, so that an end can be waited for. Internal to the SDK.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace gyre {
inline namespace sdk {

// Threads: any.
class Running {
 public:
  void Enter();
  // To be called when nothing is left of what entered, its references to nodes included: gRPC 1.51 may
  // destroy a channel on any thread but its own.
  void Leave();
  // Waits until nothing runs, but no longer than `bound`. True when nothing does.
  bool Wait(std::chrono::milliseconds bound);

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  int count_ = 0;
};

}  // namespace sdk
}  // namespace gyre
