// The thread that drives a lane: drain the inbox, take a turn, again.
#pragma once

#include <absl/time/time.h>
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "server/lane/inbox.h"
#include "server/lane/lane.h"
#include "server/lane/thread_name.h"

namespace gyre {

// The clocks of this machine.
class MachineClock : public Clock {
 public:
  Now Read() override {
    using std::chrono::duration_cast;
    const auto steady = std::chrono::steady_clock::now().time_since_epoch();
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    return {.steady = {duration_cast<std::chrono::microseconds>(steady).count()},
            .wall_ms = static_cast<uint64_t>(duration_cast<std::chrono::milliseconds>(wall).count())};
  }
};

class LaneThread {
 public:
  // The runtime's parts must outlive this.
  LaneThread(Node::Config config, ActorClock clock, Runtime runtime, Inbox<Input>& inbox)
      : runtime_(runtime),
        inbox_(inbox),
        lane_(std::move(config), std::move(clock), runtime),
        thread_([this] { Loop(); }) {}
  ~LaneThread() { Join(); }

  // Ends once the inbox is closed and, until `patience` from then on, what is under way has ended. Returns
  // the clock's state for a clean end; nullopt when something was still under way.
  std::optional<ActorState> Join() {
    if (thread_.joinable()) thread_.join();
    if (!lane_.idle()) return std::nullopt;
    return lane_.node().CleanState();
  }

 private:
  static constexpr absl::Duration kIdle =
      absl::Milliseconds(200);  // how long a turn may wait without a deadline
  static constexpr absl::Duration kPatience = absl::Seconds(5);
  static constexpr size_t kBusy = 16;  // inputs of a turn
  static constexpr size_t kGathered = 256;
  static constexpr absl::Duration kLinger = absl::Microseconds(400);

  void Loop() {
    NameThisThread("lane");
    std::vector<Input> inputs;
    while (inbox_.Drain(NextTurn(), inputs)) {
      // Many inputs at once tell that more are on their way. Taken into the same turn they share its messages
      // and its wake-ups, which cost more than the moment that they wait.
      if (inputs.size() >= kBusy) inbox_.Gather(absl::Now() + kLinger, kGathered, inputs);
      lane_.Turn(inputs);
    }
    inputs.push_back(Drain{});
    const absl::Time give_up = absl::Now() + kPatience;
    lane_.Turn(inputs);
    while (!lane_.idle() && absl::Now() < give_up) {
      inbox_.DrainLate(std::min(NextTurn(), give_up), inputs);
      lane_.Turn(inputs);
    }
  }

  absl::Time NextTurn() {
    const std::optional<Micros> due = lane_.next_deadline();
    if (!due) return absl::Now() + kIdle;
    const Micros wait = *due - runtime_.clock.Read().steady;
    return absl::Now() + std::min(absl::Microseconds(wait.value), kIdle);
  }

  Runtime runtime_;
  Inbox<Input>& inbox_;
  Lane lane_;
  std::thread thread_;
};

}  // namespace gyre
