// What a benchmark asks for: the mixes of YCSB's core workloads, and how keys are chosen.
//
// Source: Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010.
#pragma once

#include <cstdint>
#include <string>

namespace gyre::cli {

// The finalizer of SplitMix64: well-mixed bits of a counter.
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Random bits of one operation; the same for the same seed.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(Mix(seed)) {}
  uint64_t Bits() { return Mix(state_++); }
  double Unit() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }  // in [0, 1)

 private:
  uint64_t state_;
};

// Ranks from 1 to n, of which rank k comes up in proportion to k to the power of -0.99. Any n costs the same:
// by rejection-inversion (Hörmann and Derflinger, 1996).
class Zipf {
 public:
  // REQUIRES: n >= 1.
  explicit Zipf(uint64_t n);
  uint64_t Draw(Dice& dice) const;

 private:
  double Integral(double x) const;  // of the density's hull
  double InverseIntegral(double x) const;

  uint64_t n_;
  double first_;  // the integral up to 1.5, less the density at 1
  double last_;   // up to n + 0.5
  double near_;   // so close to its rank no draw is rejected
};

enum class Operation : uint8_t { kRead, kUpdate, kInsert, kReadModifyWrite };
enum class Distribution : uint8_t { kUniform, kZipfian, kLatest };

struct Workload {
  std::string name;
  double reads = 0;  // fractions; the rest are read-modify-writes
  double updates = 0;
  double inserts = 0;
  Distribution distribution = Distribution::kUniform;  // which it has by itself

  Operation Choose(Dice& dice) const;
};

// "put", "get" and "mixed" (half each), and YCSB's "a", "b", "c", "d" and "f". REQUIRES: one of these.
Workload WorkloadOf(const std::string& name);

// Chooses among the keys 0 to keys-1. Threads: any.
class KeyChooser {
 public:
  KeyChooser(Distribution distribution, uint64_t keys);
  // `newest` is the number of keys that there are by now, at least `keys`. Popular keys are spread over all
  // of them, but for kLatest, where the newest are the most popular.
  uint64_t Choose(Dice& dice, uint64_t newest) const;

 private:
  Distribution distribution_;
  uint64_t keys_;
  Zipf zipf_;
};

}  // namespace gyre::cli
