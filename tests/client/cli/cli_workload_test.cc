// The mixes of YCSB and how keys are chosen, by counting a fixed stream of dice.
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <vector>

#include "client/cli/workload.h"

namespace gyre::cli {
namespace {

constexpr int kDraws = 200000;

std::map<Operation, double> FractionsOf(const std::string& name) {
  const Workload workload = WorkloadOf(name);
  std::map<Operation, double> fractions;
  for (int i = 0; i < kDraws; ++i) {
    Dice dice(static_cast<uint64_t>(i));
    fractions[workload.Choose(dice)] += 1.0 / kDraws;
  }
  return fractions;
}

TEST(WorkloadTest, MixesAreTheirFractions) {
  using enum Operation;
  EXPECT_EQ(FractionsOf("put").size(), 1u);
  EXPECT_NEAR(FractionsOf("a")[kRead], .5, .01);
  EXPECT_NEAR(FractionsOf("a")[kUpdate], .5, .01);
  EXPECT_NEAR(FractionsOf("b")[kUpdate], .05, .005);
  EXPECT_NEAR(FractionsOf("c")[kRead], 1, 1e-9);
  EXPECT_NEAR(FractionsOf("d")[kInsert], .05, .005);
  EXPECT_NEAR(FractionsOf("f")[kReadModifyWrite], .5, .01);
}

// Each of the first ranks comes up as often as the law says.
TEST(WorkloadTest, ZipfIsZipf) {
  constexpr uint64_t kRanks = 1000;
  const Zipf zipf(kRanks);
  std::vector<double> counts(kRanks + 1);
  for (int i = 0; i < kDraws; ++i) {
    Dice dice(static_cast<uint64_t>(i));
    const uint64_t rank = zipf.Draw(dice);
    ASSERT_GE(rank, 1u);
    ASSERT_LE(rank, kRanks);
    ++counts[rank];
  }
  double total = 0;
  for (uint64_t k = 1; k <= kRanks; ++k) total += std::pow(static_cast<double>(k), -.99);
  for (const uint64_t k : {1, 2, 3, 10, 50}) {
    const double expected = kDraws * std::pow(static_cast<double>(k), -.99) / total;
    EXPECT_NEAR(counts[k], expected, 5 * std::sqrt(expected)) << "rank " << k;
  }
}

TEST(WorkloadTest, ZipfOfOneAndOfVeryMany) {
  Dice dice(1);
  EXPECT_EQ(Zipf(1).Draw(dice), 1u);
  const Zipf huge(999999999);
  for (int i = 0; i < 1000; ++i) EXPECT_LE(huge.Draw(dice), 999999999u);
}

TEST(WorkloadTest, KeysAreOfThoseThatThereAre) {
  for (const Distribution distribution :
       {Distribution::kUniform, Distribution::kZipfian, Distribution::kLatest}) {
    const KeyChooser chooser(distribution, 100);
    for (int i = 0; i < 10000; ++i) {
      Dice dice(static_cast<uint64_t>(i));
      EXPECT_LT(chooser.Choose(dice, 150), 150u);
    }
  }
}

TEST(WorkloadTest, TheLatestAreThePopular) {
  const KeyChooser chooser(Distribution::kLatest, 1000);
  std::vector<int> counts(2000);
  for (int i = 0; i < kDraws; ++i) {
    Dice dice(static_cast<uint64_t>(i));
    ++counts[chooser.Choose(dice, 2000)];
  }
  EXPECT_GT(counts[1999], counts[1998]);
  EXPECT_GT(counts[1998], 10 * counts[1500]);
  EXPECT_EQ(counts[999], 0);
}

}  // namespace
}  // namespace gyre::cli
