// A campaign: as many simulations as a time allows, on all cores.
#pragma once

#include <chrono>
#include <cstdint>

#include "tests/sim/simulation.h"

namespace gyre::sim {

// Plays seeds from `first` on until `time` is over, on `threads` threads; one seed of a hundred is played
// twice.
Batch RunCampaign(uint64_t first, std::chrono::minutes time, unsigned threads);

}  // namespace gyre::sim
