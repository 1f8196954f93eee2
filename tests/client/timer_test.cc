// Tasks are told whether their time came or the timer was stopped.
#include "client/timer.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

namespace gyre {
namespace {

using Wakes = std::vector<Wake>;

TEST(Timer, ATaskIsRunWhenItsTimeHasCome) {
  Timer timer;
  absl::Notification run;
  Wake why = Wake::kStopped;
  timer.RunAt(TimePoint(), [&](Wake wake) {
    why = wake;
    run.Notify();
  });
  run.WaitForNotification();
  EXPECT_EQ(why, Wake::kTime);
}

TEST(Timer, WhatIsLeftIsToldOfTheStop) {
  Timer timer;
  Wakes wakes;
  timer.RunAt(TimePoint::max(), [&](Wake wake) {
    wakes.push_back(wake);
    timer.RunAt(TimePoint::max(), [&](Wake again) { wakes.push_back(again); });
  });
  timer.Stop();
  EXPECT_EQ(wakes, (Wakes{Wake::kStopped, Wake::kStopped}));
  timer.RunAt(TimePoint::max(), [&](Wake wake) { wakes.push_back(wake); });
  EXPECT_EQ(wakes.size(), 3u);
  EXPECT_EQ(wakes.back(), Wake::kStopped);
}

}  // namespace
}  // namespace gyre
