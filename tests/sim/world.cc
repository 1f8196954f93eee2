// The world of one simulation: what is said about it.
#include "tests/sim/world.h"

#include <cstdio>

namespace gyre::sim {

void World::Print(const std::string& who, const std::string& text) const {
  std::printf("%10.6f %-4s %s\n", static_cast<double>(now_.value) / 1e6, who.c_str(), text.c_str());
}

void World::Violated(const std::string& sentence) {
  violations_.push_back(sentence);
  if (tracing_) Print("!!", sentence);
}

}  // namespace gyre::sim
