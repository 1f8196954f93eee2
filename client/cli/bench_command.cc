// bench: so many calls in flight, or so many started a second, from one process; how fast, and how late.
#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>

#include "client/cli/histogram.h"
#include "client/cli/session.h"
#include "client/cli/workload.h"
#include "proto/parked_poller.h"

namespace gyre::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr std::chrono::milliseconds kTick{1};
constexpr std::chrono::milliseconds kPauseAfterFailure{10};

struct BenchFlags {
  std::string op;
  std::string workload;
  std::string distribution;
  bool load = false;
  bool histogram = false;
  uint64_t keys = 100000;
  uint64_t value_bytes = 100;
  uint64_t in_flight = 64;
  double seconds = 10;
  double rate = 0;  // calls started a second; 0: as many as in_flight allows
};

std::string KeyAt(uint64_t index) {
  std::array<char, 32> text;
  const int size = std::snprintf(text.data(), text.size(), "bench-%09lu", static_cast<unsigned long>(index));
  return {text.data(), static_cast<size_t>(size)};
}

Distribution DistributionOf(const BenchFlags& flags, const Workload& workload) {
  if (flags.distribution == "uniform") return Distribution::kUniform;
  if (flags.distribution == "zipfian") return Distribution::kZipfian;
  if (flags.distribution == "latest") return Distribution::kLatest;
  return workload.distribution;
}

// Threads: Start on one thread; the answers come on the client's.
class Bench {
 public:
  Bench(Client client, const BenchFlags& flags)
      : client_(std::move(client)),
        flags_(flags),
        workload_(WorkloadOf(flags.op.empty() ? flags.workload : flags.op)),
        chooser_(DistributionOf(flags, workload_), flags.keys),
        newest_(flags.keys) {
    // Values are slices of this: random, so that no compression helps, and cheap to make.
    random_bytes_.resize(flags.value_bytes + kSlices);
    std::mt19937_64 random(1);
    for (char& byte : random_bytes_) byte = static_cast<char>(random());
  }

  // Writes every key once. The first error, if there was one.
  absl::Status Load() {
    std::unique_lock lock(mutex_);
    absl::Status first;
    for (uint64_t i = 0; i < flags_.keys && first.ok(); ++i) {
      changed_.wait(lock, [&] { return in_flight_ < flags_.in_flight; });
      ++in_flight_;
      lock.unlock();
      client_.AsyncPut(KeyAt(i), ValueOf(Mix(i)), {}, [this, &first](const absl::StatusOr<PutResult>& put) {
        const std::lock_guard answered(mutex_);
        first.Update(put.status());
        --in_flight_;
        changed_.notify_one();
      });
      lock.lock();
    }
    changed_.wait(lock, [&] { return in_flight_ == 0; });
    return first;
  }

  void Run() {
    start_ = Clock::now();
    end_ =
        start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(flags_.seconds));
    if (flags_.rate > 0) {
      RunOpen();
    } else {
      RunClosed();
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return in_flight_ == 0; });
    elapsed_ = std::chrono::duration<double>(Clock::now() - start_).count();
  }

  Json Report() const {
    Json errors = Json::object();
    for (const auto& [code, count] : errors_) errors[code] = count;
    const double seconds = std::max(elapsed_, 1e-9);
    Json report = {{"op", workload_.name},
                   {"in_flight", flags_.in_flight},
                   {"seconds", seconds},
                   {"operations", operations_.load()},
                   {"ops_per_second", static_cast<double>(operations_.load()) / seconds},
                   {"errors", errors},
                   {"latency_us",
                    {{"p50", latency_.Quantile(.5)},
                     {"p95", latency_.Quantile(.95)},
                     {"p99", latency_.Quantile(.99)},
                     {"p999", latency_.Quantile(.999)},
                     {"max", latency_.max()}}}};
    if (flags_.histogram) {
      report["histogram"] = Json::array();
      for (const auto& [most, count] : latency_.Buckets()) {
        report["histogram"].push_back({{"at_most_us", most}, {"count", count}});
      }
    }
    return report;
  }
  bool failed() const { return !errors_.empty(); }

 private:
  static constexpr uint64_t kSlices = 4096;

  // Each answer starts the next call; a call that failed rests first, so that a cluster that is down is not
  // hammered.
  void RunClosed() {
    {
      const std::lock_guard lock(mutex_);
      in_flight_ = flags_.in_flight;
    }
    for (uint64_t i = 0; i < flags_.in_flight; ++i) StartOne(Clock::now());
    parked_.emplace();
    while (Clock::now() < end_) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kPauseAfterFailure, [&] { return in_flight_ == 0 && resting_ == 0; });
      const uint64_t again = std::exchange(resting_, 0);
      if (again == 0) continue;
      in_flight_ += again;
      lock.unlock();
      for (uint64_t i = 0; i < again; ++i) StartOne(Clock::now());
    }
  }

  // Calls start at fixed times, whatever the answers do. Where none may start, as in_flight are, the wait
  // counts.
  void RunOpen() {
    const double interval = 1 / flags_.rate;
    for (uint64_t i = 0;; ++i) {
      const Clock::time_point intended =
          start_ + std::chrono::duration_cast<Clock::duration>(
                       std::chrono::duration<double>(static_cast<double>(i) * interval));
      if (intended >= end_) return;
      std::unique_lock lock(mutex_);
      while (Clock::now() < intended) changed_.wait_until(lock, std::max(intended, Clock::now() + kTick));
      if (!changed_.wait_until(lock, end_, [&] { return in_flight_ < flags_.in_flight; })) return;
      ++in_flight_;
      lock.unlock();
      StartOne(intended);
    }
  }

  void StartOne(Clock::time_point intended) {
    Dice dice(started_.fetch_add(1, std::memory_order_relaxed));
    const Operation operation = workload_.Choose(dice);
    const uint64_t newest = newest_.load(std::memory_order_relaxed);
    const auto answered = [this, intended](const auto& result) { Answered(intended, StatusOf(result)); };
    switch (operation) {
      case Operation::kRead:
        return client_.AsyncGet(KeyAt(chooser_.Choose(dice, newest)), {}, answered);
      case Operation::kUpdate:
        return client_.AsyncPut(KeyAt(chooser_.Choose(dice, newest)), ValueOf(dice.Bits()), {}, answered);
      case Operation::kInsert:
        return client_.AsyncPut(KeyAt(newest_.fetch_add(1, std::memory_order_relaxed)), ValueOf(dice.Bits()),
                                {}, answered);
      case Operation::kReadModifyWrite:
        return client_.AsyncUpdate(
            KeyAt(chooser_.Choose(dice, newest)),
            [value = ValueOf(dice.Bits())](const std::vector<std::string>&) { return value; }, {}, answered);
    }
  }

  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename Result>
  static const absl::Status& StatusOf(const absl::StatusOr<Result>& result) {
    return result.status();
  }

  std::string ValueOf(uint64_t random) const {
    return random_bytes_.substr(random % kSlices, flags_.value_bytes);
  }

  void Answered(Clock::time_point intended, const absl::Status& status) {
    const Clock::time_point now = Clock::now();
    if (status.ok()) {
      latency_.Add(static_cast<uint64_t>(std::chrono::duration_cast<microseconds>(now - intended).count()));
      operations_.fetch_add(1, std::memory_order_relaxed);
      if (flags_.rate == 0 && now < end_) return StartOne(now);
    }
    const std::lock_guard lock(mutex_);
    if (!status.ok()) {
      ++errors_[CodeName(status.code())];
      if (flags_.rate == 0 && now < end_) ++resting_;
    }
    --in_flight_;
    changed_.notify_one();
  }

  Client client_;
  const BenchFlags flags_;
  const Workload workload_;
  const KeyChooser chooser_;
  std::atomic<uint64_t> newest_;  // keys that there are, those being inserted included
  std::string random_bytes_;
  Clock::time_point start_;
  Clock::time_point end_;
  double elapsed_ = 0;
  std::atomic<uint64_t> started_{0};
  std::atomic<uint64_t> operations_{0};
  Histogram latency_;
  std::optional<ParkedPoller> parked_;  // what measures takes no more of the processors than it must

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  uint64_t in_flight_ = 0;
  uint64_t resting_ = 0;
  std::map<std::string, uint64_t> errors_;
};

void RunBench(Session& session, const BenchFlags& flags) {
  absl::StatusOr<Client> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status(), Effect::kRead);
  const auto bench = std::make_unique<Bench>(*client, flags);
  if (flags.load) {
    if (const absl::Status loaded = bench->Load(); !loaded.ok()) return session.Fail(loaded, Effect::kWrite);
  }
  bench->Run();
  const Json report = bench->Report();
  if (session.json) {
    session.Print(report);
  } else {
    std::array<char, 256> line;
    const Json& latency = report["latency_us"];
    std::snprintf(
        line.data(), line.size(),
        "%s: %lu operations in %.1f s, %.0f/s; latency p50 %lu us, p95 %lu, p99 %lu, p99.9 %lu, max %lu",
        report["op"].get<std::string>().c_str(), report["operations"].get<unsigned long>(),
        report["seconds"].get<double>(), report["ops_per_second"].get<double>(),
        latency["p50"].get<unsigned long>(), latency["p95"].get<unsigned long>(),
        latency["p99"].get<unsigned long>(), latency["p999"].get<unsigned long>(),
        latency["max"].get<unsigned long>());
    session.Print(std::string(line.data()));
    for (const Json& bucket : report.value("histogram", Json::array())) {
      session.Print("at most " + bucket["at_most_us"].dump() + " us: " + bucket["count"].dump());
    }
    for (const auto& [code, count] : report["errors"].items())
      session.Print("errors " + code + ": " + count.dump());
  }
  if (report["operations"] == 0 && bench->failed()) {
    session.Fail(kUnavailable, "UNAVAILABLE", "no operation succeeded");
  }
}

}  // namespace

void AddBenchCommand(CLI::App& app, Session& session) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* bench =
      app.add_subcommand("bench", "measure reads and writes; keys are bench-000000000 and so on");
  CLI::Option* op = bench->add_option("--op", flags->op, "put, get or mixed (half each)")
                        ->check(CLI::IsMember({"put", "get", "mixed"}));
  bench
      ->add_option(
          "--workload", flags->workload,
          "of YCSB: a (half updates), b (5 % updates), c (reads), d (reads of the latest, 5 % inserts), "
          "f (half read-modify-writes)")
      ->check(CLI::IsMember({"a", "b", "c", "d", "f"}))
      ->excludes(op);
  bench
      ->add_option(
          "--distribution", flags->distribution,
          "which keys are popular: uniform, zipfian or latest (default: the workload's; uniform for --op)")
      ->check(CLI::IsMember({"uniform", "zipfian", "latest"}));
  bench->add_flag("--load", flags->load, "write every key once before the measurement");
  bench->add_flag("--histogram", flags->histogram, "also say how many calls took how long");
  bench->add_option("--keys", flags->keys, "how many keys (default 100000)")->check(CLI::Range(1, 999999999));
  bench->add_option("--value-bytes", flags->value_bytes, "of each value (default 100)")
      ->check(CLI::Range(0, 16 << 20));
  bench->add_option("--in-flight", flags->in_flight, "calls at a time (default 64)")
      ->check(CLI::Range(1, 16384));
  bench->add_option("--seconds", flags->seconds, "how long (default 10)")->check(CLI::Range(0.001, 86400.0));
  bench
      ->add_option("--rate", flags->rate,
                   "start so many calls a second; latency counts from the intended start")
      ->check(CLI::Range(0.001, 1e7));
  bench->callback([&session, flags] {
    if (flags->op.empty() && flags->workload.empty()) throw CLI::RequiredError("--op or --workload");
    RunBench(session, *flags);
  });
}

}  // namespace gyre::cli
