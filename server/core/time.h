// Time as the core is told it. Nothing in core asks for the time.
#pragma once

#include <compare>
#include <cstdint>

namespace gyre {

// Microseconds on a clock that never runs backwards; its zero means nothing.
struct Micros {
  int64_t value = 0;
  auto operator<=>(const Micros&) const = default;
  friend constexpr Micros operator+(Micros a, Micros b) { return {a.value + b.value}; }
  friend constexpr Micros operator-(Micros a, Micros b) { return {a.value - b.value}; }
};
constexpr Micros Millis(int64_t n) { return {n * 1000}; }
constexpr Micros Seconds(int64_t n) { return {n * 1000 * 1000}; }

// One moment on both clocks of a node.
struct Now {
  Micros steady;         // deadlines and intervals
  uint64_t wall_ms = 0;  // milliseconds since 1970: may jump; only versions and expiry look at it
};

}  // namespace gyre
