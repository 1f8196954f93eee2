// How fast this node gives its rows to new replicas (movement.h). What each of them takes is limited where it
// takes; but they all may take from one node that leaves, and its clients would notice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "server/core/message.h"
#include "server/core/time.h"

namespace gyre {

class GivingPace {
 public:
  // Whether a page may be given now.
  bool Admits(Micros now) const { return now >= next_at_; }
  // So much time a page that was given counts for; the next one waits until it is over. Pages that were
  // admitted together wait one after the other.
  void Charge(Micros now, Micros time) { next_at_ = std::max(next_at_, now) + time; }
  // The rate is another: what was charged by the one before counts no more.
  void Forgive() { next_at_ = {}; }

  // A request that was not admitted. One of each node waits: an older one has been given up by its sender,
  // which keeps its place.
  void Wait(FromPeer request) {
    const auto older = std::ranges::find(waiting_, request.from, &FromPeer::from);
    if (older == waiting_.end()) {
      waiting_.push_back(std::move(request));
    } else {
      *older = std::move(request);
    }
  }

  // The next one, when its time has come; to be handled as if it came now.
  std::optional<FromPeer> TakeDue(Micros now) {
    if (waiting_.empty() || !Admits(now)) return std::nullopt;
    FromPeer request = std::move(waiting_.front());
    waiting_.pop_front();
    return request;
  }

  void PeerLost(NodeId node) {
    std::erase_if(waiting_, [&](const FromPeer& waiting) { return waiting.from == node; });
  }

  std::optional<Micros> next_deadline() const {
    return waiting_.empty() ? std::nullopt : std::optional(next_at_);
  }

 private:
  Micros next_at_;
  std::deque<FromPeer> waiting_;
};

}  // namespace gyre
