// The weather: how often what goes wrong in one simulation.
#pragma once

#include "tests/sim/random.h"

namespace gyre::sim {

struct Weather {
  // Chances, each time.
  double loss = 0;
  double doubled = 0;
  double slow = 0;  // a batch of messages that takes up to `slow_max`
  double reply_lost = 0;
  double commit_fails = 0;
  double read_fails = 0;
  double crash_at_answer =
      0;  // right after a call was answered, when some of what it did is not durable everywhere
  // Mean times between; 0: never.
  Micros crash;
  Micros partition;
  Micros pause;
  Micros clock_jump;
  Micros disk_full;
  Micros layout_change;    // of the members
  bool disk_lost = false;  // of one node, once

  Micros slow_max = Millis(800);
  Micros commit_max = Millis(8);
  int64_t clock_jump_ms_max = 200;

  // Each kind is absent in about half of all simulations, so that each also meets the others' absence.
  static Weather Draw(Random& random) {
    Weather w;
    const auto maybe = [&](double& chance, double most) {
      if (random.Chance(0.5)) chance = most * static_cast<double>(random.Below(1000) + 1) / 1000;
    };
    const auto every = [&](Micros& mean, Micros least) {
      if (random.Chance(0.5)) mean = random.Between(least, {least.value * 6});
    };
    maybe(w.loss, 0.15);
    maybe(w.doubled, 0.1);
    maybe(w.slow, 0.1);
    maybe(w.reply_lost, 0.05);
    maybe(w.commit_fails, 0.05);
    maybe(w.read_fails, 0.02);
    maybe(w.crash_at_answer, 0.02);
    every(w.crash, Seconds(1));
    every(w.partition, Seconds(1));
    every(w.pause, Seconds(1));
    every(w.clock_jump, Seconds(1));
    every(w.disk_full, Seconds(2));
    every(w.layout_change, Seconds(1));
    w.disk_lost = random.Chance(0.9);
    if (random.Chance(0.3)) w.commit_max = Millis(200);
    if (random.Chance(0.2)) w.clock_jump_ms_max = 20'000;
    return w;
  }
};

}  // namespace gyre::sim
