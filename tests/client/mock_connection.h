// A Connection without nodes or clock: attempts are answered by a script, and time passes when a task waits.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "client/connection.h"

namespace gyre {
inline namespace sdk {

class MockConnection final : public Connection {
 public:
  struct Sent {
    PeerId peer;
    Request request;
    SendOptions options;
  };

  explicit MockConnection(PeerId peers) : peers_(peers) {}

  // The first peer outside `avoid`.
  std::optional<PeerId> Pick(std::string_view, std::string_view, std::span<const PeerId> avoid) override {
    for (PeerId peer = 0; peer < peers_; ++peer) {
      if (std::find(avoid.begin(), avoid.end(), peer) == avoid.end()) return peer;
    }
    return std::nullopt;
  }
  void Send(PeerId peer, std::shared_ptr<Exchange> exchange, SendOptions options) override {
    sent.push_back({peer, exchange->request(), options});
    AttemptResult result = when_unscripted;
    if (!script.empty()) {
      result = std::move(script.front());
      script.pop_front();
    }
    // An answer that does not come takes until the attempt's deadline.
    if (absl::IsDeadlineExceeded(result.status) && result.fate != Fate::kAnswered) now_ = options.deadline;
    exchange->Done(std::move(result));
  }
  TimePoint Now() override { return now_; }
  void RunAt(TimePoint time, std::function<void(Wake)> task) override {
    if (ended) return task(Wake::kStopped);
    now_ = std::max(now_, time);
    task(Wake::kTime);
  }
  uint64_t Random() override { return ++random_; }
  void Shutdown() override { ended = true; }

  std::deque<AttemptResult> script;
  AttemptResult when_unscripted = {
      .fate = Fate::kNotSent, .status = absl::UnavailableError("refused"), .reply = {}};
  std::vector<Sent> sent;
  bool ended = false;

  std::vector<PeerId> SentTo() const {
    std::vector<PeerId> peers;
    for (const Sent& one : sent) peers.push_back(one.peer);
    return peers;
  }

 private:
  const PeerId peers_;
  TimePoint now_{std::chrono::seconds(1)};
  uint64_t random_ = 0;
};

}  // namespace sdk
}  // namespace gyre
