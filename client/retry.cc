// The table of which failures are tried again.
#include "client/retry.h"

#include <algorithm>
#include <string>

namespace gyre {
inline namespace sdk {
namespace {

constexpr int64_t kDelayFirstMs = 20;
constexpr int64_t kDelayMaxMs = 1000;
constexpr std::chrono::milliseconds kAttemptMin{1000};
constexpr int kAttemptsPerTimeout = 3;

}  // namespace

NextStep RetryPlan::After(Fate fate, const absl::Status& status) {
  last_ = status;
  if (status.code() == absl::StatusCode::kUnavailable) unavailable_ = status;
  if (fate == Fate::kAnswered) answered_ = true;
  if (fate != Fate::kNotSent) may_have_been_sent_ = true;
  if (fate == Fate::kNotSent && status.code() == absl::StatusCode::kDeadlineExceeded) silent_ = true;
  hurry_ = fate == Fate::kNotSent;
  if (!hurry_) {
    round_unreached_ = false;
    ++waits_;
  }
  switch (fate) {
    case Fate::kNotSent:
      // A limit of our own is no better at another node.
      return status.code() == absl::StatusCode::kUnavailable ||
                     status.code() == absl::StatusCode::kDeadlineExceeded ||
                     status.code() == absl::StatusCode::kUnauthenticated ||
                     status.code() == absl::StatusCode::kPermissionDenied
                 ? NextStep::kOtherNode
                 : NextStep::kFinish;
    case Fate::kAnswered:
      if (status.code() == absl::StatusCode::kUnavailable) return NextStep::kOtherNode;
      return kind_ == CallKind::kRead && status.code() == absl::StatusCode::kDeadlineExceeded
                 ? NextStep::kOtherNode
                 : NextStep::kFinish;
    case Fate::kLost:
      break;
  }
  if (kind_ != CallKind::kRead) may_have_effect_ = true;
  if (kind_ == CallKind::kDelete || status.code() == absl::StatusCode::kCancelled) return NextStep::kFinish;
  // The coordinator of a lost put knows its write id best. One that is silent is not asked again.
  if (kind_ == CallKind::kPut && !same_node_tried_ && status.code() != absl::StatusCode::kDeadlineExceeded) {
    same_node_tried_ = true;
    return NextStep::kSameNode;
  }
  return NextStep::kOtherNode;
}

NextStep RetryPlan::AfterRound() {
  hurry_ = false;
  if (round_unreached_) {
    ++waits_;
    if (++unreached_rounds_ >= kUnreachedRoundsMax && !silent_) return NextStep::kFinish;
  } else {
    unreached_rounds_ = 0;
  }
  round_unreached_ = true;
  return NextStep::kOtherNode;
}

absl::Status RetryPlan::Final() const {
  const absl::StatusCode code = last_.code();
  if (!may_have_effect_ || code == absl::StatusCode::kOk || code == absl::StatusCode::kUnknown ||
      code == absl::StatusCode::kDeadlineExceeded) {
    return last_;
  }
  return absl::UnknownError(
      "outcome unknown: an attempt was sent and its answer was lost; the last error was: " +
      std::string(last_.message()));
}

absl::Status RetryPlan::AtDeadline() const {
  if (may_have_effect_) {
    return absl::DeadlineExceededError("outcome unknown: the write was sent and no answer came in time");
  }
  const bool unheard_write = kind_ != CallKind::kRead && silent_ && !answered_;
  if (!unavailable_.ok() && !unheard_write) return unavailable_;
  return absl::DeadlineExceededError("no node answered in time; the last error was: " +
                                     (last_.ok() ? "none" : std::string(last_.message())));
}

std::chrono::milliseconds RetryPlan::Delay(uint64_t random) const {
  if (hurry_) return std::chrono::milliseconds(0);
  const int doublings = std::clamp(waits_ - 1, 0, 6);
  const int64_t full = std::min(kDelayMaxMs, kDelayFirstMs << doublings);
  return std::chrono::milliseconds(full / 2 +
                                   static_cast<int64_t>(random % static_cast<uint64_t>(full / 2 + 1)));
}

std::chrono::milliseconds RetryPlan::AttemptTimeout(CallKind kind, std::chrono::milliseconds timeout) {
  if (kind == CallKind::kDelete) return timeout;
  return std::min(timeout, std::max(kAttemptMin, timeout / kAttemptsPerTimeout));
}

}  // namespace sdk
}  // namespace gyre
