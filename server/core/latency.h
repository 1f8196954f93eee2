// A running estimate of the 95th percentile of a latency, without keeping samples.
// Source: stochastic approximation of a quantile (Robbins and Monro, 1951).
#pragma once

#include <algorithm>

#include "server/core/time.h"

namespace gyre {

class LatencyQuantile {
 public:
  void Add(Micros sample) {
    // A step is a fraction of the estimate, so that it adapts at any scale; 19 steps down weigh one step up.
    const int64_t step = std::max<int64_t>(estimate_.value / 64, 19);
    estimate_.value += sample > estimate_ ? step : -step / 19;
    estimate_ = std::clamp(estimate_, kMin, kMax);
  }
  Micros p95() const { return estimate_; }

 private:
  static constexpr Micros kMin = Millis(2);
  static constexpr Micros kMax = Millis(1000);
  Micros estimate_ = Millis(20);
};

}  // namespace gyre
