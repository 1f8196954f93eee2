// The hot keys: who is hot is found among any number of others, and forgotten when it is no longer.
#include "server/rpc/hot_keys.h"

#include <gtest/gtest.h>

namespace gyre {
namespace {

GetCall Get(const std::string& key) { return {.keyspace = "default", .key = key}; }

TEST(HotKeysTest, AHotKeyIsFoundAmongManyOthers) {
  HotKeys hot;
  constexpr int kCalls = 200000;
  for (int i = 0; i < kCalls; ++i) hot.Note(i % 10 == 0 ? Get("hot") : Get(std::to_string(i)));
  const HotKeys::Report report = hot.Look();
  ASSERT_EQ(report.keys.size(), HotKeys::kPlaces);
  EXPECT_EQ(report.keys[0].key, "hot");
  EXPECT_EQ(report.keys[0].keyspace, "default");
  EXPECT_NEAR(static_cast<double>(report.keys[0].calls - report.keys[0].too_many), kCalls / 10, kCalls / 100);
  EXPECT_NEAR(static_cast<double>(report.calls), kCalls, kCalls / 20);
}

TEST(HotKeysTest, CallsWithoutAKeyAreNotCounted) {
  HotKeys hot;
  for (int i = 0; i < 10000; ++i) hot.Note(ScanCall{.keyspace = "default"});
  EXPECT_TRUE(hot.Look().keys.empty());
  EXPECT_EQ(hot.Look().calls, 0u);
}

TEST(HotKeysTest, WhatIsNoLongerHotIsForgotten) {
  HotKeys hot;
  for (uint64_t i = 0; i < HotKeys::kHalveAfter * HotKeys::kSampleEvery / 2; ++i) hot.Note(Get("yesterday"));
  for (uint64_t i = 0; i < 4 * HotKeys::kHalveAfter * HotKeys::kSampleEvery; ++i) hot.Note(Get("today"));
  const HotKeys::Report report = hot.Look();
  ASSERT_EQ(report.keys.size(), 2u);
  EXPECT_EQ(report.keys[0].key, "today");
  EXPECT_LT(report.keys[1].calls, report.keys[0].calls / 16);
}

}  // namespace
}  // namespace gyre
