// A heap of tasks and the thread that waits for the earliest.
#include "client/timer.h"

#include <algorithm>
#include <utility>

namespace gyre {
inline namespace sdk {

Timer::Timer() : state_(std::make_shared<State>()), thread_([state = state_] { Run(state); }) {}

Timer::~Timer() { Stop(); }

void Timer::RunAt(TimePoint time, std::function<void(Wake)> task) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->stopped) {
      state_->heap.push_back({time, std::move(task)});
      std::push_heap(state_->heap.begin(), state_->heap.end(), Later{});
      if (state_->heap.front().time == time) state_->changed.notify_one();
      return;
    }
  }
  task(Wake::kStopped);
}

void Timer::Stop() {
  std::vector<Entry> left;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->stopped) return;
    state_->stopped = true;
    left = std::exchange(state_->heap, {});
    state_->changed.notify_one();
  }
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
  for (Entry& entry : left) entry.task(Wake::kStopped);
}

void Timer::Run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (!state->stopped) {
    if (state->heap.empty()) {
      state->changed.wait(lock);
      continue;
    }
    const TimePoint next = state->heap.front().time;
    if (std::chrono::steady_clock::now() < next) {
      state->changed.wait_until(lock, next);
      continue;
    }
    std::pop_heap(state->heap.begin(), state->heap.end(), Later{});
    std::function<void(Wake)> task = std::move(state->heap.back().task);
    state->heap.pop_back();
    lock.unlock();
    task(Wake::kTime);
    task = nullptr;  // what it owns may need the lock as it dies
    lock.lock();
  }
}

}  // namespace sdk
}  // namespace gyre
