// The one source of chance in a simulation: the same seed gives the same numbers on every platform.
#pragma once

#include <cassert>
#include <cstdint>

#include "server/core/time.h"

namespace gyre::sim {

// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014 (SplitMix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  // In [0, n). REQUIRES: n > 0.
  uint64_t Below(uint64_t n) {
    assert(n > 0);
    return Next() % n;
  }
  bool Chance(double p) { return static_cast<double>(Next() >> 11) * 0x1p-53 < p; }
  // In [from, to].
  Micros Between(Micros from, Micros to) {
    return {from.value + static_cast<int64_t>(Below(static_cast<uint64_t>(to.value - from.value) + 1))};
  }
  // Mostly near `from`, seldom near `to`: a tail like that of real delays.
  Micros Skewed(Micros from, Micros to) {
    Micros at = to;
    for (int i = 0; i < 3; ++i) at = Between(from, at);
    return at;
  }

 private:
  uint64_t state_;
};

}  // namespace gyre::sim
