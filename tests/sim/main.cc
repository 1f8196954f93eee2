// gyre_sim: plays simulations of a cluster from their seeds.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>

#include "tests/sim/simulation.h"

int main(int argc, char** argv) {
  using gyre::sim::Batch;
  using gyre::sim::Options;
  CLI::App app("Plays simulations of a cluster. The same seed plays the same, always.");
  Options options;
  std::string range;
  auto* one = app.add_option("--seed", options.seed, "play this one");
  auto* many = app.add_option("--seeds", range, "play FIRST:LAST, and print a summary")->excludes(one);
  app.add_option("--nodes", options.nodes, "how many nodes; 0: the seed decides")->check(CLI::Range(0, 16));
  app.add_flag("--trace", options.trace, "print everything that happens")->excludes(many);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  const auto begun = std::chrono::steady_clock::now();
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
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::printf("%s\n%.1f simulated minutes a second\n", batch.Summary().c_str(),
              static_cast<double>(batch.simulated.value) / 60e6 / took.count());
  const std::string emptiness = batch.Emptiness();
  if (!emptiness.empty()) std::printf("invalid: %s\n", emptiness.c_str());
  return batch.failed.empty() && emptiness.empty() ? 0 : 1;
}
