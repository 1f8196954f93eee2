// Quantiles are right to within a sixteenth.
#include <gtest/gtest.h>

#include "client/cli/histogram.h"

namespace gyre::cli {
namespace {

TEST(Histogram, EmptyIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.Quantile(.5), 0u);
  EXPECT_EQ(histogram.max(), 0u);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t i = 1; i <= 20; ++i) histogram.Add(i);
  EXPECT_EQ(histogram.Quantile(.5), 10u);
  EXPECT_EQ(histogram.Quantile(1), 20u);
}

TEST(Histogram, LargeValuesAreClose) {
  Histogram histogram;
  for (uint64_t i = 1; i <= 100000; ++i) histogram.Add(i * 10);
  for (const double fraction : {.5, .95, .99, .999}) {
    const double exact = 1e6 * fraction;
    EXPECT_GE(static_cast<double>(histogram.Quantile(fraction)), exact);
    EXPECT_LE(static_cast<double>(histogram.Quantile(fraction)), exact * 17 / 16);
  }
  EXPECT_EQ(histogram.max(), 1000000u);
  histogram.Add(~uint64_t{0});
  EXPECT_EQ(histogram.Quantile(1), ~uint64_t{0});
}

}  // namespace
}  // namespace gyre::cli
