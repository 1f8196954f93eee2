// Which of a node's numbers are shown at /metrics, and by what name.
#pragma once

#include <cstddef>
#include <functional>

#include "server/lane/cluster_state.h"
#include "server/lane/commit_thread.h"
#include "server/lane/lane_stats.h"
#include "server/metrics.h"
#include "server/rpc/liveness.h"
#include "server/rpc/rpc_counters.h"
#include "server/security/certificate_watch.h"
#include "server/store_damage.h"
#include "storage/engine.h"

namespace gyre {

// All of it outlives the metrics.
struct MeasuredParts {
  RpcCounters& counters;
  LaneStats& lane;
  CommitThread& disk;
  Engine& engine;
  ClusterState& state;
  std::function<size_t(Liveness::State)> peers;  // how many other members are in it
  const StoreDamage& damage;
  const CertificateWatch* certificate;  // nullptr: TLS is off
};
void AddNodeMetrics(Metrics& metrics, MeasuredParts parts);

}  // namespace gyre
