// The numbers a node shows: a registry of counters, gauges and histograms, and its Prometheus text.
//
// Threads:   adding and Text() from any thread; counting is lock-free. Callbacks are called from Text().
// Ownership: what Add... returns lives as long as the Metrics.
// Names:     start with gyre_, base units (seconds, bytes); those of counters end in _total. A name may be
// added
//            several times with different labels, always as the same kind.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace gyre {

// Only ever rises.
class Counter {
 public:
  void Add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

class Gauge {
 public:
  void Set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void Add(int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

// Counts observations in buckets; a bucket holds what is at most its bound.
class Histogram {
 public:
  static constexpr size_t kBucketsMax = 32;
  // REQUIRES: 1 to kBucketsMax bounds, strictly ascending.
  explicit Histogram(std::span<const double> bounds);
  void Observe(double value);

  std::span<const double> bounds() const { return bounds_; }
  uint64_t count(size_t bucket) const { return counts_[bucket].load(std::memory_order_relaxed); }
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::array<std::atomic<uint64_t>, kBucketsMax + 1> counts_{};  // the last: above all bounds
  std::atomic<double> sum_{0};
};

// Seconds from 50 µs to 10 s, for durations of requests and syncs.
std::span<const double> LatencyBuckets();

class Metrics {
 public:
  using Labels = std::map<std::string, std::string>;
  enum class Kind : uint8_t { kCounter, kGauge, kHistogram };

  Counter& AddCounter(const std::string& name, const std::string& help, Labels labels = {});
  Gauge& AddGauge(const std::string& name, const std::string& help, Labels labels = {});
  Histogram& AddHistogram(const std::string& name, const std::string& help, std::span<const double> bounds,
                          Labels labels = {});

  // A counter or gauge that is kept elsewhere and asked for at each scrape. `read` must be thread-safe,
  // quick, and callable for as long as Text() may be called. REQUIRES: kind is not kHistogram.
  void AddCallback(Kind kind, const std::string& name, const std::string& help, std::function<double()> read,
                   Labels labels = {});

  // Everything, in the Prometheus text format, ordered by name.
  std::string Text() const;
  // Counters and gauges as name and value; with labels, the name is followed by {label="value",...}.
  std::map<std::string, double> Values() const;

 private:
  struct Series {
    Labels labels;
    std::function<double()> read;  // counter, gauge
    const Histogram* histogram = nullptr;
  };
  struct Family {
    std::string help;
    Kind kind = Kind::kGauge;
    std::vector<Series> series;
  };
  void Add(Kind kind, const std::string& name, const std::string& help, Series series);

  mutable std::mutex mutex_;  // guards what follows; counting does not take it
  std::map<std::string, Family> families_;
  std::deque<Counter> counters_;
  std::deque<Gauge> gauges_;
  std::deque<Histogram> histograms_;
};

}  // namespace gyre
