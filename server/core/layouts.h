// The layouts that a node works by at one moment: the newest, and while it moves data the one before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/core/layout.h"

namespace gyre {

// How far a member is with the newest layout, in this order. Told by gossip (membership_moves.h); never goes
// back.
enum class MoveStep : uint8_t {
  kNone = 0,  // it may not know the layout
  kAck,       // all its operations go by the layout, too
  kSync,      // all that the layout gives it, it got
  kSyncAck,   // it reads by the layout, and refuses reads by the one before
  kDone,      // the layout before has retired, and what this one gives to others is dropped
};

// What a node's messages say of the layouts it works by, so that two that work by others notice.
struct LayoutMark {
  uint64_t epoch = 0;        // of its newest layout
  uint64_t fence = 0;        // of the newest that moves data (Layout::fence)
  bool reads_other = false;  // it reads by the layout before that one
  bool operator==(const LayoutMark&) const = default;
};

struct Layouts {
  std::shared_ptr<const View> view;   // the newest; nullptr before the cluster has formed
  std::shared_ptr<const View> other;  // set while data moves: writes must reach a quorum there, too
  bool reads_other = false;           // reads go by `other`, which is complete; REQUIRES: other
  std::vector<NodeId> acked;          // sorted; members (of both) known to have acked `view`
  bool all_acked = false;             // enough of them, so that what moves may be fetched
  uint64_t stamp = 0;                 // counts what membership handed to the lane in this life

  const std::shared_ptr<const View>& reads() const { return reads_other ? other : view; }
  bool moving() const { return other != nullptr; }
  LayoutMark mark() const {
    return view == nullptr ? LayoutMark{} : LayoutMark{view->layout.epoch, view->layout.fence, reads_other};
  }
  bool HasAcked(NodeId node) const { return std::ranges::binary_search(acked, node); }
  // A member of either.
  bool HasMember(NodeId node) const {
    return view->ring.IndexOf(node) >= 0 || (other != nullptr && other->ring.IndexOf(node) >= 0);
  }
};

// What the lane has done about them: the lane's word on which membership takes its steps.
struct LaneSteps {
  uint64_t stamp = 0;   // of the layouts it works by
  uint64_t epoch = 0;   // of their `view`; what follows is about that
  bool ready = false;   // all its operations go by them, and what it held in what it will be given is gone
  bool synced = false;  // it got all that it is given
  bool done = false;    // and dropped what it is given no more
};

}  // namespace gyre
