// The Prometheus text: exact, ordered by name, one family for all labels of a name.
#include "server/metrics.h"

#include <gtest/gtest.h>

namespace gyre {
namespace {

TEST(MetricsTest, TextIsWhatPrometheusReads) {
  Metrics metrics;
  Counter& gets = metrics.AddCounter("gyre_requests_total", "Requests.", {{"op", "get"}});
  metrics.AddCounter("gyre_requests_total", "Requests.", {{"op", "put"}});
  Gauge& hints = metrics.AddGauge("gyre_hints", "Hints held.");
  double bytes = 1;
  metrics.AddCallback(Metrics::Kind::kGauge, "gyre_disk_bytes", "Bytes on disk.", [&bytes] { return bytes; });
  gets.Add();
  gets.Add(2);
  hints.Set(7);
  hints.Add(-2);
  bytes = 4096;
  EXPECT_EQ(metrics.Text(),
            "# HELP gyre_disk_bytes Bytes on disk.\n"
            "# TYPE gyre_disk_bytes gauge\n"
            "gyre_disk_bytes 4096\n"
            "# HELP gyre_hints Hints held.\n"
            "# TYPE gyre_hints gauge\n"
            "gyre_hints 5\n"
            "# HELP gyre_requests_total Requests.\n"
            "# TYPE gyre_requests_total counter\n"
            "gyre_requests_total{op=\"get\"} 3\n"
            "gyre_requests_total{op=\"put\"} 0\n");
}

TEST(MetricsTest, ABucketHoldsWhatIsAtMostItsBound) {
  Metrics metrics;
  constexpr double kBounds[] = {0.5, 1};
  Histogram& sync = metrics.AddHistogram("gyre_sync_seconds", "Syncs.", kBounds);
  for (const double seconds : {0.25, 0.5, 0.75, 1.5}) sync.Observe(seconds);
  EXPECT_EQ(metrics.Text(),
            "# HELP gyre_sync_seconds Syncs.\n"
            "# TYPE gyre_sync_seconds histogram\n"
            "gyre_sync_seconds_count 4\n"
            "gyre_sync_seconds_sum 3\n"
            "gyre_sync_seconds_bucket{le=\"0.5\"} 2\n"
            "gyre_sync_seconds_bucket{le=\"1\"} 3\n"
            "gyre_sync_seconds_bucket{le=\"+Inf\"} 4\n");
}

TEST(MetricsTest, NamesThatBreakTheRulesAreOurBugs) {
  Metrics metrics;
  metrics.AddGauge("gyre_hints", "Hints held.");
  EXPECT_DEATH(metrics.AddCounter("gyre_requests", "Requests."), "_total");
  EXPECT_DEATH(metrics.AddGauge("hints", "Hints held."), "gyre_");
  EXPECT_DEATH(metrics.AddGauge("gyre_hints", "Hints held."), "labels");
}

}  // namespace
}  // namespace gyre
