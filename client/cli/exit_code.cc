// The one place that maps statuses to exit codes.
#include "client/cli/exit_code.h"

namespace gyre::cli {

ExitCode ExitCodeOf(const absl::Status& status, Effect effect) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return kUsage;
    case absl::StatusCode::kUnavailable:
      return kUnavailable;
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
      return effect == Effect::kWrite ? kOutcomeUnknown : kUnavailable;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return kPermission;
    default:
      return kOtherFailure;
  }
}

std::string CodeName(absl::StatusCode code) { return absl::StatusCodeToString(code); }

}  // namespace gyre::cli
