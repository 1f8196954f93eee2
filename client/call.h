// One call from its first attempt to its answer: the retry loop above a Connection. Internal to the SDK.
#pragma once

#include <absl/status/statusor.h>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "client/connection.h"
#include "client/retry.h"

namespace gyre {
inline namespace sdk {

// The payload of a status that names the nodes which were asked, joined by commas.
inline constexpr char kAskedPayload[] = "gyre/asked";

// Threads: attempts follow one another, so no two threads are ever inside one Call.
class Call : public Exchange, public std::enable_shared_from_this<Call> {
 public:
  struct Settings {
    CallKind kind = CallKind::kRead;
    std::chrono::milliseconds timeout{0};
    std::optional<PeerId> not_first;  // of the first round: this node is asked already
  };
  // A put that has no write id is given one here.
  Call(std::shared_ptr<Connection> connection, Request request, Settings settings);

  // Makes the first attempt. To be called once.
  void Start();

  const Request& request() const override { return request_; }
  void Done(AttemptResult result) override;

  // The node that is, or was last, asked. Any thread.
  PeerId peer() const { return peer_.load(std::memory_order_relaxed); }

 protected:
  // Called exactly once.
  virtual void Finish(absl::StatusOr<Reply> reply) = 0;

 private:
  // Nodes tried in one round; also bounds how deep refused attempts nest.
  static constexpr size_t kRoundMax = 8;
  static constexpr size_t kAskedMax = 8;

  void Attempt(PeerId peer);
  void AttemptElsewhere();
  void Later(NextStep next);
  void End(absl::Status status);

  const std::shared_ptr<Connection> connection_;
  Request request_;
  const Settings settings_;
  RetryPlan plan_;
  TimePoint deadline_;
  std::atomic<PeerId> peer_{0};
  std::vector<PeerId> asked_;  // the last kAskedMax
  std::vector<PeerId> tried_;  // in this round
};

}  // namespace sdk
}  // namespace gyre
