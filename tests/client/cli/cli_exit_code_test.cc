// Which status ends in which exit code.
#include <gtest/gtest.h>

#include "client/cli/exit_code.h"

namespace gyre::cli {
namespace {

using absl::StatusCode;

TEST(ExitCode, Table) {
  struct Row {
    StatusCode code;
    ExitCode read;
    ExitCode write;
  };
  constexpr Row kRows[] = {
      {StatusCode::kOk, kDone, kDone},
      {StatusCode::kInvalidArgument, kUsage, kUsage},
      {StatusCode::kUnavailable, kUnavailable, kUnavailable},
      {StatusCode::kUnknown, kUnavailable, kOutcomeUnknown},
      {StatusCode::kDeadlineExceeded, kUnavailable, kOutcomeUnknown},
      {StatusCode::kPermissionDenied, kPermission, kPermission},
      {StatusCode::kUnauthenticated, kPermission, kPermission},
      {StatusCode::kResourceExhausted, kOtherFailure, kOtherFailure},
      {StatusCode::kInternal, kOtherFailure, kOtherFailure},
      {StatusCode::kNotFound, kOtherFailure,
       kOtherFailure},  // a keyspace: a key that is not there is no error
  };
  for (const Row& row : kRows) {
    const absl::Status status(row.code, "x");
    EXPECT_EQ(ExitCodeOf(status, Effect::kRead), row.read) << CodeName(row.code);
    EXPECT_EQ(ExitCodeOf(status, Effect::kWrite), row.write) << CodeName(row.code);
  }
  EXPECT_EQ(CodeName(StatusCode::kInvalidArgument), "INVALID_ARGUMENT");
}

}  // namespace
}  // namespace gyre::cli
