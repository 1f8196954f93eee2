// Loads etcd as `gyre bench` loads Gyre: a closed loop with a number of calls in flight; prints one JSON
// document.
//
// Usage: etcd_load put|get IN_FLIGHT SECONDS KEYS VALUE_BYTES ENDPOINT...
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <grpcpp/grpcpp.h>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/etcd.grpc.pb.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Load {
  bool put = true;
  int in_flight = 0;
  int keys = 0;
  std::string value;
  Clock::time_point end;
  std::vector<std::unique_ptr<etcdserverpb::KV::Stub>> stubs;
  std::atomic<uint64_t> done = 0;
  std::atomic<uint64_t> failed = 0;
  std::mutex mutex;
  std::condition_variable ended;
  int running = 0;
};

// One of the calls in flight: starts the next when it ends.
class Caller {
 public:
  Caller(Load& load, int number)
      : load_(load),
        random_(static_cast<uint64_t>(number)),
        stub_(*load.stubs[static_cast<size_t>(number) % load.stubs.size()]) {}

  void Next() {
    if (Clock::now() >= load_.end) {
      const std::lock_guard lock(load_.mutex);
      if (--load_.running == 0) load_.ended.notify_all();
      return;
    }
    context_ = std::make_unique<grpc::ClientContext>();
    char key[32];
    std::snprintf(key, sizeof key, "bench-%012d",
                  static_cast<int>(random_() % static_cast<uint64_t>(load_.keys)));
    started_ = Clock::now();
    const auto ended = [this](const grpc::Status& status) {
      (status.ok() ? load_.done : load_.failed).fetch_add(1);
      latencies.push_back(
          std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - started_).count());
      Next();
    };
    if (load_.put) {
      put_.set_key(key);
      put_.set_value(load_.value);
      stub_.async()->Put(context_.get(), &put_, &put_reply_, ended);
    } else {
      range_.set_key(key);
      stub_.async()->Range(context_.get(), &range_, &range_reply_, ended);
    }
  }

  std::vector<int64_t> latencies;

 private:
  Load& load_;
  std::mt19937_64 random_;
  etcdserverpb::KV::Stub& stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  Clock::time_point started_;
  etcdserverpb::PutRequest put_;
  etcdserverpb::PutResponse put_reply_;
  etcdserverpb::RangeRequest range_;
  etcdserverpb::RangeResponse range_reply_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7)
    return std::fputs("usage: etcd_load put|get IN_FLIGHT SECONDS KEYS VALUE_BYTES ENDPOINT...\n", stderr), 2;
  Load load;
  load.put = std::string(argv[1]) == "put";
  load.in_flight = std::atoi(argv[2]);
  const int seconds = std::atoi(argv[3]);
  load.keys = std::atoi(argv[4]);
  load.value.assign(static_cast<size_t>(std::atoi(argv[5])), 'v');
  for (int i = 6; i < argc; ++i) {
    load.stubs.push_back(
        etcdserverpb::KV::NewStub(grpc::CreateChannel(argv[i], grpc::InsecureChannelCredentials())));
  }
  const Clock::time_point begin = Clock::now();
  load.end = begin + std::chrono::seconds(seconds);
  load.running = load.in_flight;
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < load.in_flight; ++i) callers.push_back(std::make_unique<Caller>(load, i));
  for (auto& caller : callers) caller->Next();
  // Ends within a call's time of the last second; a call has no longer than the seconds asked for once more.
  std::unique_lock lock(load.mutex);
  load.ended.wait_until(lock, load.end + std::chrono::seconds(seconds), [&] { return load.running == 0; });
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  std::vector<int64_t> all;
  for (auto& caller : callers) all.insert(all.end(), caller->latencies.begin(), caller->latencies.end());
  std::sort(all.begin(), all.end());
  const auto at = [&](double p) {
    return all.empty() ? 0 : all[static_cast<size_t>(p * static_cast<double>(all.size() - 1))];
  };
  std::printf(
      "{\"op\":\"%s\",\"in_flight\":%d,\"seconds\":%.3f,\"operations\":%llu,\"ops_per_second\":%.1f,"
      "\"errors\":%llu,"
      "\"latency_us\":{\"p50\":%lld,\"p99\":%lld}}\n",
      argv[1], load.in_flight, took, static_cast<unsigned long long>(load.done.load()),
      static_cast<double>(load.done.load()) / took, static_cast<unsigned long long>(load.failed.load()),
      static_cast<long long>(at(.5)), static_cast<long long>(at(.99)));
  std::fflush(stdout);
  std::_Exit(0);  // calls that never came back are nobody's concern any more
}
