// Whatever goes wrong in a cluster, its promises hold: hundreds of simulations, and first those that ever
// failed.
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <vector>

#include "tests/sim/simulation.h"

namespace gyre::sim {
namespace {

// Lines of "SEED [NODES]", with comments after '#'.
std::vector<Options> Regressions() {
  std::vector<Options> all;
  std::ifstream file(std::string(GYRE_SOURCE_DIR) + "/tests/sim/regressions.txt");
  EXPECT_TRUE(file.is_open());
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    Options options;
    if (!(words >> options.seed)) continue;
    words >> options.nodes;
    all.push_back(options);
  }
  return all;
}

TEST(ClusterSim, SeedsThatEverFailed) {
  Batch batch;
  for (const Options& options : Regressions()) batch.Run(options, true);
  EXPECT_EQ(batch.failed, std::vector<uint64_t>());
}

TEST(ClusterSim, FiveHundredSeeds) {
  Batch batch;
  for (uint64_t seed = 1; seed <= 500; ++seed) batch.Run({.seed = seed}, seed % 50 == 0);
  std::printf("%s\n", batch.Summary().c_str());
  EXPECT_EQ(batch.failed, std::vector<uint64_t>());
  EXPECT_EQ(batch.Emptiness(), "");
}

}  // namespace
}  // namespace gyre::sim
