// Which failures are tried again, where, and what status remains: the policy as a table.
#include <gtest/gtest.h>

#include "client/retry.h"

namespace gyre {
namespace {

using absl::StatusCode;
using std::chrono::milliseconds;

absl::Status Error(StatusCode code) { return absl::Status(code, "x"); }

struct Row {
  const char* what;
  CallKind kind;
  Fate fate;
  StatusCode code;
  NextStep next;
  StatusCode final;  // if no further attempt is made
};

constexpr Row kRows[] = {
    {"a read goes on elsewhere", CallKind::kRead, Fate::kAnswered, StatusCode::kUnavailable,
     NextStep::kOtherNode, StatusCode::kUnavailable},
    {"a slow read goes on elsewhere", CallKind::kRead, Fate::kAnswered, StatusCode::kDeadlineExceeded,
     NextStep::kOtherNode, StatusCode::kDeadlineExceeded},
    {"a lost read goes on elsewhere", CallKind::kRead, Fate::kLost, StatusCode::kUnavailable,
     NextStep::kOtherNode, StatusCode::kUnavailable},
    {"a wrong read ends", CallKind::kRead, Fate::kAnswered, StatusCode::kInvalidArgument, NextStep::kFinish,
     StatusCode::kInvalidArgument},
    {"a refused put goes on elsewhere", CallKind::kPut, Fate::kAnswered, StatusCode::kUnavailable,
     NextStep::kOtherNode, StatusCode::kUnavailable},
    {"an unsent put goes on elsewhere", CallKind::kPut, Fate::kNotSent, StatusCode::kUnavailable,
     NextStep::kOtherNode, StatusCode::kUnavailable},
    {"a lost put asks its coordinator", CallKind::kPut, Fate::kLost, StatusCode::kUnavailable,
     NextStep::kSameNode, StatusCode::kUnknown},
    {"a silent coordinator is not asked again", CallKind::kPut, Fate::kLost, StatusCode::kDeadlineExceeded,
     NextStep::kOtherNode, StatusCode::kDeadlineExceeded},
    {"an unknown outcome is the answer", CallKind::kPut, Fate::kAnswered, StatusCode::kUnknown,
     NextStep::kFinish, StatusCode::kUnknown},
    {"a limit is the answer", CallKind::kPut, Fate::kAnswered, StatusCode::kResourceExhausted,
     NextStep::kFinish, StatusCode::kResourceExhausted},
    {"a limit of our own is the answer", CallKind::kRead, Fate::kNotSent, StatusCode::kResourceExhausted,
     NextStep::kFinish, StatusCode::kResourceExhausted},
    {"a lost delete ends", CallKind::kDelete, Fate::kLost, StatusCode::kUnavailable, NextStep::kFinish,
     StatusCode::kUnknown},
    {"an unsent delete goes on elsewhere", CallKind::kDelete, Fate::kNotSent, StatusCode::kUnavailable,
     NextStep::kOtherNode, StatusCode::kUnavailable},
    {"a refused delete goes on elsewhere", CallKind::kDelete, Fate::kAnswered, StatusCode::kUnavailable,
     NextStep::kOtherNode, StatusCode::kUnavailable},
    {"a destroyed client's lost put is unknown", CallKind::kPut, Fate::kLost, StatusCode::kCancelled,
     NextStep::kFinish, StatusCode::kUnknown},
};

TEST(RetryPlan, FirstFailure) {
  for (const Row& row : kRows) {
    RetryPlan plan(row.kind);
    EXPECT_EQ(plan.After(row.fate, Error(row.code)), row.next) << row.what;
    EXPECT_EQ(plan.Final().code(), row.final) << row.what;
  }
}

TEST(RetryPlan, ALostPutAsksItsCoordinatorOnce) {
  RetryPlan plan(CallKind::kPut);
  EXPECT_EQ(plan.After(Fate::kLost, Error(StatusCode::kUnavailable)), NextStep::kSameNode);
  EXPECT_EQ(plan.After(Fate::kLost, Error(StatusCode::kUnavailable)), NextStep::kOtherNode);
}

TEST(RetryPlan, OnceSentAWriteNeverFailsForCertain) {
  RetryPlan plan(CallKind::kPut);
  plan.After(Fate::kLost, Error(StatusCode::kUnavailable));
  plan.After(Fate::kAnswered, Error(StatusCode::kUnavailable));
  EXPECT_EQ(plan.Final().code(), StatusCode::kUnknown);
  EXPECT_EQ(plan.AtDeadline().code(), StatusCode::kDeadlineExceeded);
  plan.After(Fate::kAnswered, Error(StatusCode::kInvalidArgument));
  EXPECT_EQ(plan.Final().code(), StatusCode::kUnknown);
}

TEST(RetryPlan, AtTheDeadlineUnavailableStays) {
  RetryPlan plan(CallKind::kRead);
  EXPECT_EQ(plan.AtDeadline().code(), StatusCode::kDeadlineExceeded);
  plan.After(Fate::kAnswered, Error(StatusCode::kUnavailable));
  plan.After(Fate::kLost, Error(StatusCode::kDeadlineExceeded));
  EXPECT_EQ(plan.AtDeadline().code(), StatusCode::kUnavailable);
}

TEST(RetryPlan, AtTheDeadlineAnUnheardWriteIsNotUnavailable) {
  for (const CallKind kind : {CallKind::kPut, CallKind::kDelete}) {
    RetryPlan plan(kind);
    plan.After(Fate::kNotSent, Error(StatusCode::kUnavailable));
    EXPECT_EQ(plan.AtDeadline().code(), StatusCode::kUnavailable);
    plan.After(Fate::kNotSent, Error(StatusCode::kDeadlineExceeded));
    EXPECT_EQ(plan.AtDeadline().code(), StatusCode::kDeadlineExceeded);
    plan.After(Fate::kAnswered, Error(StatusCode::kUnavailable));  // nothing was sent to the silent one
    EXPECT_EQ(plan.AtDeadline().code(), StatusCode::kUnavailable);
  }
}

TEST(RetryPlan, ASilentNodeIsWaitedForUntilTheDeadline) {
  RetryPlan plan(CallKind::kPut);
  for (int round = 0; round < 2 * RetryPlan::kUnreachedRoundsMax; ++round) {
    plan.After(Fate::kNotSent, Error(StatusCode::kDeadlineExceeded));
    EXPECT_EQ(plan.AfterRound(), NextStep::kOtherNode);
  }
}

TEST(RetryPlan, TwoRoundsWithoutReachingAnyNodeEnd) {
  RetryPlan plan(CallKind::kRead);
  plan.After(Fate::kNotSent, Error(StatusCode::kUnavailable));
  EXPECT_EQ(plan.AfterRound(), NextStep::kOtherNode);
  plan.After(Fate::kAnswered, Error(StatusCode::kUnavailable));  // one was reached: start counting again
  EXPECT_EQ(plan.AfterRound(), NextStep::kOtherNode);
  plan.After(Fate::kNotSent, Error(StatusCode::kUnavailable));
  EXPECT_EQ(plan.AfterRound(), NextStep::kOtherNode);
  plan.After(Fate::kNotSent, Error(StatusCode::kUnavailable));
  EXPECT_EQ(plan.AfterRound(), NextStep::kFinish);
  EXPECT_EQ(plan.Final().code(), StatusCode::kUnavailable);
}

TEST(RetryPlan, DelaysDoubleAndAreJittered) {
  RetryPlan plan(CallKind::kRead);
  plan.After(Fate::kNotSent, Error(StatusCode::kUnavailable));
  EXPECT_EQ(plan.Delay(7), milliseconds(0));
  plan.After(Fate::kAnswered, Error(StatusCode::kUnavailable));
  EXPECT_EQ(plan.Delay(0), milliseconds(10));
  EXPECT_EQ(plan.Delay(10), milliseconds(20));
  EXPECT_EQ(plan.Delay(11), milliseconds(10));
  plan.After(Fate::kAnswered, Error(StatusCode::kUnavailable));
  EXPECT_EQ(plan.Delay(0), milliseconds(20));
  for (int i = 0; i < 20; ++i) plan.After(Fate::kAnswered, Error(StatusCode::kUnavailable));
  EXPECT_EQ(plan.Delay(500), milliseconds(1000));
}

TEST(RetryPlan, OneNodeGetsAThirdOfTheTime) {
  EXPECT_EQ(RetryPlan::AttemptTimeout(CallKind::kRead, milliseconds(6000)), milliseconds(2000));
  EXPECT_EQ(RetryPlan::AttemptTimeout(CallKind::kPut, milliseconds(1500)), milliseconds(1000));
  EXPECT_EQ(RetryPlan::AttemptTimeout(CallKind::kRead, milliseconds(10)), milliseconds(10));
  EXPECT_EQ(RetryPlan::AttemptTimeout(CallKind::kDelete, milliseconds(6000)), milliseconds(6000));
}

}  // namespace
}  // namespace gyre
