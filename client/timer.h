// One thread that runs tasks when their time has come. Internal to the SDK.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "client/connection.h"

namespace gyre {
inline namespace sdk {

// Threads: any. Tasks run one after another and must not block.
class Timer {
 public:
  Timer();
  // As Stop.
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Runs `task` exactly once: at that time, or with kStopped at once, on this thread, when the timer is
  // stopped.
  void RunAt(TimePoint time, std::function<void(Wake)> task);
  // Runs what is left with kStopped, on this thread, and ends the timer's thread. A task may stop its own
  // timer.
  void Stop();

 private:
  struct Entry {
    TimePoint time;
    std::function<void(Wake)> task;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const { return a.time > b.time; }
  };
  // Shared with the thread, which outlives a timer that one of its own tasks stopped.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Entry> heap;  // the earliest first
    bool stopped = false;
  };
  static void Run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace sdk
}  // namespace gyre
