// Collects the numbers of a node and writes them as Prometheus text.
#include "server/metrics.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <prometheus/check_names.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <utility>

namespace gyre {
namespace {

prometheus::MetricType TypeOf(Metrics::Kind kind) {
  switch (kind) {
    case Metrics::Kind::kCounter:
      return prometheus::MetricType::Counter;
    case Metrics::Kind::kGauge:
      return prometheus::MetricType::Gauge;
    case Metrics::Kind::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

// The count is taken from the buckets, so that a scrape agrees with itself while others observe.
prometheus::ClientMetric::Histogram Snapshot(const Histogram& histogram) {
  prometheus::ClientMetric::Histogram result;
  for (size_t i = 0; i <= histogram.bounds().size(); ++i) {
    const bool last = i == histogram.bounds().size();
    result.sample_count += histogram.count(i);
    result.bucket.push_back(
        {.cumulative_count = result.sample_count,
         .upper_bound = last ? std::numeric_limits<double>::infinity() : histogram.bounds()[i]});
  }
  result.sample_sum = histogram.sum();
  return result;
}

}  // namespace

Histogram::Histogram(std::span<const double> bounds) : bounds_(bounds.begin(), bounds.end()) {
  assert(!bounds_.empty());
  assert(bounds_.size() <= kBucketsMax);
  assert(std::adjacent_find(bounds_.begin(), bounds_.end(), std::greater_equal<>()) == bounds_.end());
}

void Histogram::Observe(double value) {
  const size_t bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::span<const double> LatencyBuckets() {
  static constexpr double kBounds[] = {0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                                       0.05,    0.1,    0.2,    0.5,    1,     2,     5,     10};
  return kBounds;
}

Counter& Metrics::AddCounter(const std::string& name, const std::string& help, Labels labels) {
  const std::lock_guard lock(mutex_);
  Counter& counter = counters_.emplace_back();
  Add(Kind::kCounter, name, help,
      {.labels = std::move(labels), .read = [&counter] { return static_cast<double>(counter.value()); }});
  return counter;
}

Gauge& Metrics::AddGauge(const std::string& name, const std::string& help, Labels labels) {
  const std::lock_guard lock(mutex_);
  Gauge& gauge = gauges_.emplace_back();
  Add(Kind::kGauge, name, help,
      {.labels = std::move(labels), .read = [&gauge] { return static_cast<double>(gauge.value()); }});
  return gauge;
}

Histogram& Metrics::AddHistogram(const std::string& name, const std::string& help,
                                 std::span<const double> bounds, Labels labels) {
  const std::lock_guard lock(mutex_);
  Histogram& histogram = histograms_.emplace_back(bounds);
  Add(Kind::kHistogram, name, help, {.labels = std::move(labels), .read = nullptr, .histogram = &histogram});
  return histogram;
}

void Metrics::AddCallback(Kind kind, const std::string& name, const std::string& help,
                          std::function<double()> read, Labels labels) {
  assert(kind != Kind::kHistogram);
  assert(read);
  const std::lock_guard lock(mutex_);
  Add(kind, name, help, {.labels = std::move(labels), .read = std::move(read)});
}

void Metrics::Add(Kind kind, const std::string& name, const std::string& help, Series series) {
  assert(name.starts_with("gyre_"));
  assert(prometheus::CheckMetricName(name));
  assert(name.ends_with("_total") == (kind == Kind::kCounter));
  Family& family =
      families_.try_emplace(name, Family{.help = help, .kind = kind, .series = {}}).first->second;
  assert(family.kind == kind);
  for (const Series& other : family.series) assert(other.labels != series.labels);
  family.series.push_back(std::move(series));
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, family] : families_) {
    prometheus::MetricFamily shown{
        .name = name, .help = family.help, .type = TypeOf(family.kind), .metric = {}};
    for (const Series& series : family.series) {
      prometheus::ClientMetric& metric = shown.metric.emplace_back();
      for (const auto& [label, value] : series.labels)
        metric.label.push_back({.name = label, .value = value});
      switch (family.kind) {
        case Kind::kCounter:
          metric.counter.value = series.read();
          break;
        case Kind::kGauge:
          metric.gauge.value = series.read();
          break;
        case Kind::kHistogram:
          metric.histogram = Snapshot(*series.histogram);
          break;
      }
    }
    families.push_back(std::move(shown));
  }
  return prometheus::TextSerializer().Serialize(families);
}

std::map<std::string, double> Metrics::Values() const {
  std::map<std::string, double> values;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, family] : families_) {
    for (const Series& series : family.series) {
      if (!series.read) continue;
      std::string full = name;
      for (const auto& [label, value] : series.labels) {
        full.append(full.back() == '"' ? "," : "{").append(label).append("=\"").append(value).append("\"");
      }
      values[series.labels.empty() ? full : full + "}"] = series.read();
    }
  }
  return values;
}

}  // namespace gyre
