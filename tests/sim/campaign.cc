// Seeds to whichever thread is free.
#include "tests/sim/campaign.h"

#include <atomic>
#include <thread>
#include <vector>

namespace gyre::sim {

Batch RunCampaign(uint64_t first, std::chrono::minutes time, unsigned threads) {
  const auto end = std::chrono::steady_clock::now() + time;
  std::atomic<uint64_t> next = first;
  std::vector<Batch> batches(threads);
  {
    std::vector<std::jthread> workers;
    for (Batch& batch : batches) {
      workers.emplace_back([&next, &batch, end] {
        while (std::chrono::steady_clock::now() < end) {
          const uint64_t seed = next.fetch_add(1);
          batch.Run({.seed = seed}, seed % 100 == 0);
        }
      });
    }
  }
  Batch all;
  for (const Batch& batch : batches) all.Add(batch);
  return all;
}

}  // namespace gyre::sim
