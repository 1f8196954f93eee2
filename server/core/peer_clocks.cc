// The median of the members' clocks.
#include "server/core/peer_clocks.h"

#include <algorithm>
#include <vector>

namespace gyre {

int64_t PeerClocks::OffsetMs(const Turn& turn) const {
  // As offsets to this node's own clock, which is one of them.
  std::vector<int64_t> offsets = {0};
  for (const auto& [node, clock] : clocks_) {
    const Micros age = turn.now.steady - clock.heard_at;
    if (node == turn.self || age > kForgottenAfter || turn.view()->ring.IndexOf(node) < 0) continue;
    offsets.push_back(static_cast<int64_t>(clock.wall_ms) + age.value / 1000 -
                      static_cast<int64_t>(turn.now.wall_ms));
  }
  const auto median = offsets.begin() + static_cast<ptrdiff_t>((offsets.size() - 1) / 2);
  std::nth_element(offsets.begin(), median, offsets.end());
  return -*median;
}

}  // namespace gyre
