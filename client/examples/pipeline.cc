// An asynchronous pipeline: thousands of writes on their way at a time, from one thread, within a bound.
#include <atomic>
#include <cstdio>
#include <gyre/client.h>
#include <semaphore>
#include <string>

int Pipeline(const std::string& endpoint, int keys) {
  const auto client = gyre::Client::Connect({.endpoints = {endpoint}});
  if (!client.ok()) return std::fprintf(stderr, "%s\n", client.status().ToString().c_str()), 1;
  gyre::Client store = *client;

  // The bound: beyond some thousands more calls in flight only make each of them slower, and the client
  // refuses what exceeds its own limit.
  constexpr int kInFlight = 1024;
  std::counting_semaphore<kInFlight> room(kInFlight);
  std::atomic<int> written = 0;
  std::atomic<int> failed = 0;
  for (int i = 0; i < keys; ++i) {
    room.acquire();
    store.AsyncPut("pipeline:" + std::to_string(i), "value " + std::to_string(i), {},
                   [&](const absl::StatusOr<gyre::PutResult>& put) {
                     ++(put.ok() ? written : failed);
                     room.release();  // a callback may do this: it does not block
                   });
  }
  for (int i = 0; i < kInFlight; ++i) room.acquire();  // until the last is answered
  std::printf("written %d, failed %d\n", written.load(), failed.load());
  return failed == 0 ? 0 : 1;
}
