// How this node's clock stands to those of the other members.
//
// A node whose clock is far ahead would mint dots that others can follow only by force, and one whose clock
// is far behind lets values live too long. Each member says its clock about once a second (stable_cut.h); the
// median of all is taken for the time. A value driven by its node.
#pragma once

#include <cstdint>
#include <map>

#include "server/core/time.h"
#include "server/core/turn.h"

namespace gyre {

class PeerClocks {
 public:
  void Heard(const Turn& turn, NodeId node, uint64_t wall_ms) { clocks_[node] = {wall_ms, turn.now.steady}; }

  // How many milliseconds this node's clock is ahead of the median of the members' clocks (of two, of the
  // slower one); negative: behind. 0 while no other clock is known.
  int64_t OffsetMs(const Turn& turn) const;

 private:
  // A clock that was not heard of for so long is not known any more.
  static constexpr Micros kForgottenAfter = Seconds(60);

  struct Clock {
    uint64_t wall_ms = 0;
    Micros heard_at;
  };
  std::map<NodeId, Clock> clocks_;
};

}  // namespace gyre
