// One simulation from its seed: a phase in which anything may happen, and one in which everything must come
// right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/world.h"

namespace gyre::sim {

struct Options {
  uint64_t seed = 0;
  int nodes = 0;  // 0: chance decides
  bool trace = false;
};

struct Report {
  std::vector<std::string> violations;
  Counts counts = {};
  Micros simulated;
  uint64_t digest = 0;
};

Report Simulate(const Options& options);

// Many of them. Prints what is wrong as it goes, each seed with its first sentence.
struct Batch {
  uint64_t seeds = 0;
  std::vector<uint64_t> failed;
  Counts counts = {};
  Micros simulated;

  void Run(const Options& options, bool twice);
  void Add(const Batch& other);
  // Why a batch without violations still proves nothing; empty when it does.
  std::string Emptiness() const;
  std::string Summary() const;
};

}  // namespace gyre::sim
