// When a call is tried again, and where: a pure policy. No clock, no random source, no I/O.
#pragma once

#include <absl/status/status.h>
#include <chrono>
#include <cstdint>

#include "client/connection.h"

namespace gyre {
inline namespace sdk {

// What may be repeated without harm.
enum class CallKind : uint8_t {
  kRead,    // always
  kPut,     // always, as the nodes know its write id again
  kDelete,  // only when the attempt before certainly had no effect
};

enum class NextStep : uint8_t { kFinish, kSameNode, kOtherNode };

// Judges the attempts of one call, in order. A value, for one thread at a time.
class RetryPlan {
 public:
  // So many rounds through all nodes that none could be reached in are enough to say so.
  static constexpr int kUnreachedRoundsMax = 2;

  explicit RetryPlan(CallKind kind) : kind_(kind) {}

  // Takes the result of an attempt (but not its reply).
  NextStep After(Fate fate, const absl::Status& status);
  // There is no other node left to try in this round. Rounds are counted only where every node refused: a
  // silent one may still speak.
  NextStep AfterRound();

  // The status to end with after the last attempt's, when no further one is made.
  absl::Status Final() const;
  // The status to end with when time is up. A write that no node answered is DEADLINE_EXCEEDED if any of them
  // was silent, and UNAVAILABLE if all refused; what a node did answer stays.
  absl::Status AtDeadline() const;

  // True when the next attempt must be marked: a node may have seen an earlier one, whatever it said to it.
  bool may_have_been_sent() const { return may_have_been_sent_; }
  // How long to wait before the next attempt: 20 ms, doubling to a second, of which the lower half is sure
  // and the upper half follows `random`. Nothing before another node is tried because the last could not be
  // reached.
  std::chrono::milliseconds Delay(uint64_t random) const;

  // How long to wait for one node's answer before another is asked.
  static std::chrono::milliseconds AttemptTimeout(CallKind kind, std::chrono::milliseconds timeout);

 private:
  CallKind kind_;
  bool may_have_been_sent_ = false;
  bool may_have_effect_ = false;
  bool answered_ = false;
  bool silent_ = false;  // a node let its time pass without a word, although nothing was sent to it
  bool same_node_tried_ = false;
  bool hurry_ = false;
  bool round_unreached_ = true;
  int unreached_rounds_ = 0;
  int waits_ = 0;
  absl::Status last_;
  absl::Status unavailable_;  // the last UNAVAILABLE
};

}  // namespace sdk
}  // namespace gyre
