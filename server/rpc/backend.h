// What the services push into and ask from: the parts of the running node that rpc may see.
#pragma once

#include <absl/status/statusor.h>
#include <functional>
#include <map>
#include <string>

#include "server/core/message.h"
#include "server/lane/cluster_state.h"
#include "server/lane/commit_thread.h"
#include "server/lane/control_thread.h"
#include "server/lane/inbox.h"
#include "server/lane/lane_stats.h"
#include "server/rpc/access.h"
#include "server/rpc/calls.h"
#include "server/rpc/liveness.h"
#include "server/rpc/rpc_counters.h"

namespace gyre {

// All of it outlives the services.
struct Backend {
  NodeId self;
  Clock& clock;
  Inbox<Input>& lane;
  Calls& calls;
  ClusterState& state;
  ControlThread& control;
  CommitThread& disk;
  RpcCounters& counters;
  LaneStats& lane_stats;
  Access access;
  size_t calls_in_flight_max = 0;                        // of one session
  std::function<void(NodeId, bool open)> incoming_link;  // a peer's link to this node was opened or ended
  std::function<Liveness(NodeId)> liveness;              // what this node thinks of one
  std::function<std::map<std::string, double>()> stats;  // counters by their name at /metrics
};

}  // namespace gyre
