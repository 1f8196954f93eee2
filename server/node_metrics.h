// Which of a node's numbers are shown at /metrics, and by what name.
#pragma once

#include "server/lane/cluster_state.h"
#include "server/lane/commit_thread.h"
#include "server/lane/lane_stats.h"
#include "server/metrics.h"
#include "server/rpc/rpc_counters.h"
#include "storage/engine.h"

namespace gyre {

// All of it outlives the metrics.
struct MeasuredParts {
  RpcCounters& counters;
  LaneStats& lane;
  CommitThread& disk;
  Engine& engine;
  ClusterState& state;
};
void AddNodeMetrics(Metrics& metrics, MeasuredParts parts);

}  // namespace gyre
