// Which of a node's numbers are shown at /metrics, and by what name.
#include "server/node_metrics.h"

#include <algorithm>
#include <atomic>
#include <memory>

namespace gyre {

void AddNodeMetrics(Metrics& metrics, MeasuredParts parts) {
  const auto count = [&](const char* name, const char* help, const std::atomic<uint64_t>& value) {
    metrics.AddCallback(Metrics::Kind::kCounter, name, help,
                        [&value] { return static_cast<double>(value.load(std::memory_order_relaxed)); });
  };
  const auto gauge = [&](const char* name, const char* help, auto read) {
    metrics.AddCallback(Metrics::Kind::kGauge, name, help, [read] { return static_cast<double>(read()); });
  };
  const auto total = [&](const char* name, const char* help, auto read) {
    metrics.AddCallback(Metrics::Kind::kCounter, name, help, [read] { return static_cast<double>(read()); });
  };
  RpcCounters& rpc = parts.counters;
  LaneStats& lane = parts.lane;
  count("gyre_session_calls_total", "Calls received on session streams.", rpc.session_calls);
  count("gyre_unary_calls_total", "Calls received one by one.", rpc.unary_calls);
  count("gyre_calls_failed_total", "Calls answered with an error.", rpc.calls_failed);
  count("gyre_peer_frames_received_total", "Frames received from peers.", rpc.peer_frames_received);
  count("gyre_peer_messages_received_total", "Messages received from peers.", rpc.peer_messages_received);
  count("gyre_peer_messages_sent_total", "Messages sent to peers.", rpc.peer_messages_sent);
  count("gyre_peer_messages_dropped_total", "Messages dropped because a link was down or full.",
        rpc.peer_messages_dropped);
  total("gyre_peer_messages_refused_total",
        "Messages refused: garbled, of a foreign cluster or a stranger, or nonsense.",
        [&rpc, &lane] { return rpc.peer_messages_refused.load() + lane.peer_messages_refused.load(); });
  count("gyre_peer_links_broken_total", "Links to peers that broke.", rpc.links_broken);
  count("gyre_connections_refused_total", "Connections closed at once, at limits.connections.",
        rpc.connections_refused);
  count("gyre_calls_denied_total", "Calls refused because of the caller's certificate or permissions.",
        rpc.calls_denied);
  gauge("gyre_sessions", "Session streams that are open.",
        [&rpc] { return rpc.sessions_open.load(std::memory_order_relaxed); });

  gauge("gyre_calls_in_flight", "Calls that this node works on.",
        [&lane] { return lane.calls_in_flight.load(); });
  gauge("gyre_filling", "1 while this node fills a store that was lost, and answers no reads.",
        [&lane] { return lane.filling.load() ? 1 : 0; });
  gauge("gyre_stable_cut_seconds",
        "Unix time up to which nobody can bring back what was deleted or superseded; 0: not known yet.",
        [&lane] { return lane.stable_cut_ms.load() / 1000; });
  gauge("gyre_stable_cut_blockers", "Members that hold the stable cut back.",
        [&lane] { return lane.cut_blockers().size(); });
  gauge("gyre_hints_held", "Hints that this node holds for others.",
        [&lane] { return lane.hints_held.load(); });
  gauge("gyre_hints_held_bytes", "Bytes of these hints.", [&lane] {
    uint64_t bytes = 0;
    for (const auto& [node, hints] : lane.hints()) bytes += hints.bytes;
    return bytes;
  });
  total("gyre_hints_delivered_total", "Hints that were delivered, and erased.", [&lane] {
    uint64_t delivered = 0;
    for (const auto& [node, hints] : lane.hints()) delivered += hints.delivered;
    return delivered;
  });
  count("gyre_hints_refused_total", "Hints refused at the limit: anti-entropy does their work.",
        lane.hints_refused);
  count("gyre_repair_rounds_total", "Rounds of anti-entropy that ended.", lane.exchange_rounds);
  count("gyre_repair_ranges_compared_total", "Ranges whose sums were compared with a peer's.",
        lane.ranges_compared);
  count("gyre_repair_records_compared_total", "Records compared by hash.", lane.records_compared);
  count("gyre_repair_records_sent_total", "Records sent because a peer lacked them.", lane.records_sent);
  count("gyre_repair_sent_bytes_total", "Bytes of these records.", lane.repair_bytes_sent);
  count("gyre_repair_hash_sent_bytes_total", "Bytes of sums and row hashes sent.", lane.hash_bytes_sent);
  gauge("gyre_repair_unequal_ranges", "Pairs of range and peer that were not found equal when last compared.",
        [&lane] { return lane.unequal_ranges.load(); });

  count("gyre_move_keys_received_total", "Keys fetched because a layout gave them to this node.",
        lane.move_keys_received);
  count("gyre_move_received_bytes_total", "Bytes of these keys and their records.", lane.move_bytes_received);
  gauge("gyre_move_ranges_left", "Ranges that this node has still to fetch.", [&lane] {
    const LaneStats::Moves moves = lane.moves();
    return std::ranges::count_if(moves,
                                 [](const MoveStats& m) { return m.state != MoveStats::State::kDone; });
  });
  gauge("gyre_move_dropping", "1 while this node may hold rows that the layout gives to it no more.",
        [&lane] { return lane.dropping.load() ? 1 : 0; });
  gauge("gyre_moves_paused", "1 while an operator has paused what this node fetches.",
        [&lane] { return lane.moves_paused.load() ? 1 : 0; });

  gauge("gyre_clock_offset_seconds",
        "How far this node's clock is ahead of the median of the members' clocks; negative: behind.",
        [&lane] { return static_cast<double>(lane.clock_offset_ms.load()) / 1000; });
  gauge("gyre_clock_is_off",
        "1 while that is more than limits.clock_drift_ms: other nodes coordinate its writes.",
        [&lane] { return lane.clock_is_off.load() ? 1 : 0; });
  count("gyre_records_from_the_future_total",
        "Records taken with a counter further ahead of this node's clock than limits.clock_drift_ms.",
        lane.records_from_the_future);

  CommitThread& disk = parts.disk;
  gauge("gyre_collectible_rows", "Rows with a tombstone, a value that expires or a retry to remember.",
        [&disk] { return disk.collectible(); });
  total("gyre_commit_batches_total", "Batches made durable, or tried.", [&disk] { return disk.batches(); });
  total("gyre_commit_rows_total", "Rows in these batches.", [&disk] { return disk.rows(); });
  total("gyre_commit_failures_total", "Batches that could not be made durable.",
        [&disk] { return disk.failures(); });

  Engine& engine = parts.engine;
  gauge("gyre_store_keys", "Rows on disk, an estimate, tombstones included.",
        [&engine] { return engine.EstimateSize().keys; });
  gauge("gyre_store_bytes", "Bytes on disk.", [&engine] { return engine.EstimateSize().bytes; });
  total("gyre_store_damage_total", "Times that damage was met in the store, since the process started.",
        [&damage = parts.damage] { return damage.met(); });

  ClusterState& state = parts.state;
  gauge("gyre_layout_epoch", "The epoch of the active layout; 0 before the cluster has formed.", [&state] {
    const std::shared_ptr<const View> view = state.view();
    return view ? view->layout.epoch : 0;
  });
  gauge("gyre_nodes_known", "Nodes that were heard of, this one included.",
        [&state] { return state.known()->size(); });
  if (parts.certificate != nullptr) {
    gauge("gyre_certificate_expiry_seconds",
          "Unix time at which the certificate in use, or its authority, expires.",
          [certificate = parts.certificate] { return certificate->current()->expires_s; });
    total("gyre_certificate_reload_failures_total",
          "Certificates that were found in the files and refused; the one before stayed in use.",
          [certificate = parts.certificate] { return certificate->failures(); });
  }
  const auto peers = [&](const char* name, Liveness::State wanted) {
    metrics.AddCallback(
        Metrics::Kind::kGauge, "gyre_peers", "Other members, by what this node thinks of them.",
        [count = parts.peers, wanted] { return static_cast<double>(count(wanted)); }, {{"state", name}});
  };
  peers("up", Liveness::State::kUp);
  peers("suspect", Liveness::State::kSuspect);
  peers("down", Liveness::State::kDown);
}

}  // namespace gyre
