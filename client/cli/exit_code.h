// The exit codes that scripts rely on, and which status ends in which.
#pragma once

#include <absl/status/status.h>
#include <string>

namespace gyre::cli {

enum ExitCode : int {
  kDone = 0,
  kOtherFailure = 1,
  kUsage = 2,  // or an invalid argument
  kKeyNotFound = 3,
  kConflict = 4,     // siblings where one value was asked for
  kUnavailable = 5,  // and certainly without effect
  kOutcomeUnknown = 6,
  kPermission = 7,
};

enum class Effect { kRead, kWrite };

// A read without its quorum or its answer is unavailable: it has no outcome that could be unknown.
ExitCode ExitCodeOf(const absl::Status& status, Effect effect);

// The code as text: "INVALID_ARGUMENT".
std::string CodeName(absl::StatusCode code);

}  // namespace gyre::cli
