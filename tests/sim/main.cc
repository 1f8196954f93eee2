// gyre_sim: plays simulations of a cluster from their seeds.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/sim/campaign.h"

namespace {

using gyre::sim::Batch;
using gyre::sim::Options;

// The last lines, and the exit code.
int Conclude(const Batch& batch, std::chrono::duration<double> took) {
  const double minutes = static_cast<double>(batch.simulated.value) / 60e6;
  std::printf("%s\n%.1f cluster-hours in %.1f minutes, %.1f simulated minutes a second\n",
              batch.Summary().c_str(), minutes / 60, took.count() / 60, minutes / took.count());
  const std::string emptiness = batch.Emptiness();
  if (!emptiness.empty()) std::printf("invalid: %s\n", emptiness.c_str());
  for (const uint64_t seed : batch.failed)
    std::printf("replay: gyre_sim --seed %llu --trace\n", static_cast<unsigned long long>(seed));
  return batch.failed.empty() && emptiness.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Plays simulations of a cluster. The same seed plays the same, always.");
  Options options;
  std::string range;
  bool campaign = false;
  int minutes = 60;
  auto* one = app.add_option("--seed", options.seed, "play this one; of a campaign the first");
  auto* many = app.add_option("--seeds", range, "play FIRST:LAST, and print a summary")->excludes(one);
  auto* long_one =
      app.add_flag("--campaign", campaign, "play one after the other on all cores")->excludes(many);
  app.add_option("--minutes", minutes, "of a campaign (default 60)")
      ->needs(long_one)
      ->check(CLI::Range(1, 10'000));
  app.add_option("--nodes", options.nodes, "how many nodes; 0: the seed decides")->check(CLI::Range(0, 16));
  app.add_flag("--trace", options.trace, "print everything that happens")->excludes(many)->excludes(long_one);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  const auto begun = std::chrono::steady_clock::now();
  const auto took = [&] { return std::chrono::steady_clock::now() - begun; };
  if (campaign) {
    const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    return Conclude(gyre::sim::RunCampaign(options.seed, std::chrono::minutes(minutes), threads), took());
  }
  Batch batch;
  if (many->count() == 0) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
    batch.Run(options, false);
    std::printf("%s\n", batch.Summary().c_str());
    return batch.failed.empty() ? 0 : 1;
  }
  unsigned long long first = 0;
  unsigned long long last = 0;
  if (std::sscanf(range.c_str(), "%llu:%llu", &first, &last) != 2 || last < first) {
    std::fprintf(stderr, "gyre_sim: --seeds wants FIRST:LAST, such as 1:500\n");
    return 2;
  }
  std::printf("seeds %llu to %llu\n", first, last);
  for (options.seed = first; options.seed <= last; ++options.seed) batch.Run(options, options.seed % 50 == 0);
  return Conclude(batch, took());
}
