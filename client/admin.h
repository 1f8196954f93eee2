// What operators ask a cluster: its members, its keyspaces, and what single nodes hold.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/export.h"
#include "client/types.h"

namespace gyre {
inline namespace sdk {

/// A node as the asked one sees it.
struct NodeStatus {
  std::string id;       ///< 16 hexadecimal digits
  std::string address;  ///< HOST:PORT for clients; empty: not known yet
  std::string zone;
  uint32_t weight = 0;
  std::string state;      ///< "up", "suspect" or "down", as the asked node sees it
  uint64_t state_ms = 0;  ///< for how long it has been up, or has not been
  bool member = false;    ///< while data moves also one that leaves
  std::string step;       ///< while data moves, how far it is: "none", "ack", "sync", "sync-ack" or "done"
  std::vector<uint64_t> tokens;
  double owned = 0;       ///< fraction of the ring
  double replicated = 0;  ///< fraction of the default keyspace's rows
  uint64_t keys = 0;      ///< an estimate
  uint64_t bytes = 0;     ///< on disk
  bool filling =
      false;  ///< its store was lost: it answers no reads until it has what the other replicas have
  uint64_t collectible = 0;  ///< rows with a tombstone, a value that expires or a retry to remember
  uint64_t hints_held = 0;   ///< for others
  uint64_t hints_owed = 0;   ///< held by others for it
  std::string version;
};
/// A keyspace and its rules.
struct KeyspaceInfo {
  uint32_t id = 0;
  std::string name;
  uint32_t n = 3;
  std::optional<Replicas> r;  ///< unset when creating: quorum
  std::optional<Replicas> w;
  std::string conflict = "siblings";  ///< or "last-write-wins"
  uint64_t ttl_ms = 0;                ///< 0: values do not expire by themselves
  bool strict = false;                ///< only primary replicas count, whatever a call says
};
/// The time up to which nobody can bring back what was deleted or superseded; tombstones before it are
/// collected.
struct StableCutInfo {
  /// A member that holds it back, and why.
  struct Blocker {
    std::string node;
    std::string why;
  };
  std::optional<uint64_t> lag_ms;   ///< unset: none yet since the asked node started
  std::vector<Blocker> blocked_by;  ///< members that hold it back
};
/// The cluster as the asked node sees it.
struct ClusterInfo {
  uint64_t cluster_id = 0;  ///< 0: not formed yet
  uint64_t layout_epoch = 0;
  std::string layout_digest;
  uint32_t active_layouts = 0;  ///< 2 while data moves
  std::string answered_by;
  std::vector<NodeStatus> nodes;  ///< ordered by id
  std::vector<KeyspaceInfo> keyspaces;
  bool converged = false;
  StableCutInfo stable_cut;
};
/// Where a key lives.
struct Location {
  uint64_t token = 0;
  uint64_t layout_epoch = 0;
  std::vector<NodeStatus> primaries;  ///< in order of preference, without tokens and sizes
  std::vector<NodeStatus> fallbacks;
};
/// What is to change about a keyspace.
struct KeyspaceChange {
  std::string name;
  std::optional<Replicas> r;  ///< unset: unchanged
  std::optional<Replicas> w;
  std::optional<uint64_t> ttl_ms;
  std::optional<bool> strict;
};
/// A keyspace after a change.
struct KeyspaceResult {
  KeyspaceInfo keyspace;
  uint64_t layout_epoch = 0;
};
/// The Merkle sum of one range on one node.
struct RangeDigest {
  std::string node;
  std::string keyspace;
  uint64_t begin = 0;  ///< tokens in (begin, end]; begin == end: the whole ring
  uint64_t end = 0;
  std::string sum;  ///< 32 hexadecimal digits; empty while it is recounted
};
/// One version of a record, as it is on disk.
struct DumpedVersion {
  Value value;
  std::string write_id;
  bool retried = false;
};
/// The record of a key on one node.
struct RecordDump {
  std::string node;
  bool found = false;
  std::string record;             ///< as on disk
  std::vector<std::string> seen;  ///< "actor@counter"
  std::vector<DumpedVersion> versions;
};
/// A recount of the Merkle sums from disk.
struct Verification {
  std::string node;
  uint64_t leaves = 0;
  uint64_t rows = 0;
  uint64_t differences = 0;
};
/// A key that clients often ask one node for.
struct HotKey {
  std::string keyspace;
  std::string key;
  uint64_t calls = 0;     ///< an estimate from a sample; older calls count half, a quarter and so on
  uint64_t too_many = 0;  ///< by at most so many it may be too high
};

/// What a node counts, by the names of its metrics.
struct NodeCounters {
  std::string node;
  std::map<std::string, double> counters;
  std::vector<HotKey> hot_keys;  ///< the hottest first
  uint64_t calls = 0;            ///< of all keys, in the same sample
};

/// What anti-entropy did on one node since it started.
struct RepairTotals {
  std::string node;
  uint64_t unequal_ranges = 0;  ///< that the last comparison did not find equal
  uint64_t ranges = 0;
  uint64_t records_compared = 0;
  uint64_t records_sent = 0;
  uint64_t bytes_sent = 0;
  uint64_t hash_bytes = 0;
};

/// What one node holds for another, to be delivered when that is up.
struct HintsHeld {
  std::string holder;
  std::string node;
  uint64_t hints = 0;
  uint64_t bytes = 0;
  uint64_t delivered = 0;  ///< since the holder started
};
/// All hints of one holder.
struct HolderHints {
  bool counted = false;  ///< false: the node has just started and does not know them all yet
  std::vector<HintsHeld> hints;
};

/// What is to change about members and replicas. A node is named by its id, or by the beginning of it that no
/// other node has.
struct ClusterChanges {
  /// A member that leaves, and who takes its place.
  struct Replace {
    std::string old;
    std::string by;  ///< takes over its tokens
    bool operator==(const Replace&) const = default;
  };
  /// A number for a node or keyspace.
  struct Number {
    std::string name;  ///< of a node, or of a keyspace
    uint32_t number = 0;
    bool operator==(const Number&) const = default;
  };
  /// A zone for a node.
  struct Zone {
    std::string node;
    std::string zone;
    bool operator==(const Zone&) const = default;
  };
  std::vector<std::string> add;  ///< announced nodes; zone and weight are what they say of themselves
  std::vector<std::string> remove;
  std::vector<Replace> replace;
  std::vector<Number> weight;
  std::vector<Zone> zone;
  std::vector<Number> tokens;
  std::vector<Number> keyspace_n;  ///< replicas of each key
  bool operator==(const ClusterChanges&) const = default;
};
/// What one node would fetch from another.
struct PlannedMove {
  std::string from;
  std::string to;
  uint64_t ranges = 0;
  uint64_t keys = 0;   ///< estimates
  uint64_t bytes = 0;  ///< of keys and records, as they travel
  bool operator==(const PlannedMove&) const = default;
};
/// The largest share of a node over the one that its weight asks for; 1 is even.
struct ShareBalance {
  double owned = 0;
  double replicated = 0;
  bool operator==(const ShareBalance&) const = default;
};
/// A change, and what it would move.
struct ClusterPlan {
  uint64_t base_epoch = 0;  ///< the layout it is for
  uint64_t base_digest = 0;
  uint64_t hash = 0;
  ClusterChanges changes;  ///< with whole ids
  std::vector<PlannedMove> moves;
  ShareBalance before;
  ShareBalance after;
  std::vector<std::string> warnings;
  std::vector<std::string> loss;  ///< what may be lost; if there is any it can only be applied by force
  bool operator==(const ClusterPlan&) const = default;
};

/// A range that one node fetches.
struct RangeMove {
  std::string from;
  std::string to;
  std::string keyspace;
  uint64_t begin = 0;  ///< tokens in (begin, end]; begin == end: the whole ring
  uint64_t end = 0;
  uint64_t keys_done = 0;
  uint64_t keys_total = 0;  ///< an estimate, until it is done
  uint64_t bytes_done = 0;
  std::optional<double> eta_seconds;  ///< at the rate that is set; unset: not known
  std::string state;                  ///< "waiting", "running", "paused" or "done"
};
/// What one node fetches.
struct NodeMoves {
  std::string node;
  uint64_t layout_epoch = 0;      ///< the newest that the node knows
  uint32_t active_layouts = 0;    ///< 2 while data moves
  bool going_back = false;        ///< the newest layout aborts the movement before
  bool finished = false;          ///< no data moves, and all members are voters: they may be changed again
  bool paused = false;            ///< this node
  uint64_t bytes_per_second = 0;  ///< that it fetches at most
  std::vector<RangeMove> moves;
};
/// What is to change about how a node fetches.
struct MovesControl {
  std::optional<bool> paused;  ///< unset: unchanged
  std::optional<uint64_t> bytes_per_second;
};

class NodeBackup;  // client/admin_backup.h, which is not installed

/// Asks one node of the cluster after the other, until one answers.
///
/// **Threads.** Every method may be called from any thread at any time. They block, at most for the timeout.
///
/// **Errors.** An absl::Status with the code of the protocol; UNAVAILABLE when no endpoint can be reached,
/// UNAUTHENTICATED or PERMISSION_DENIED when certificates do not suffice.
class GYRE_EXPORT AdminClient {
 public:
  /// The first of `endpoints` (HOST:PORT) that answers is asked. Without `tls`: without encryption, and
  /// nobody proves who it is.
  AdminClient(std::vector<std::string> endpoints, std::chrono::milliseconds timeout,
              std::optional<TlsFiles> tls);
  ~AdminClient();

  /// Members, their state and share, and whether all is converged.
  absl::StatusOr<ClusterInfo> ClusterStatus();
  /// Which nodes hold a key.
  absl::StatusOr<Location> Locate(const std::string& keyspace, const std::string& key);
  /// Makes one; needs a majority of the voters, as the two below.
  absl::StatusOr<KeyspaceResult> CreateKeyspace(const KeyspaceInfo& keyspace);
  /// Changes one.
  absl::StatusOr<KeyspaceResult> SetKeyspace(const KeyspaceChange& change);
  /// Deletes one with all its keys, for good.
  absl::StatusOr<KeyspaceResult> DropKeyspace(const std::string& name);

  /// Changes nothing.
  absl::StatusOr<ClusterPlan> Plan(const ClusterChanges& changes);
  /// Makes a planned change, if it still is what the asked node computes; `force`: although keys may be lost.
  /// Returns the epoch of the new layout; then data moves. To apply once more what is applied changes
  /// nothing. FAILED_PRECONDITION: the layout changed since, data still moves, or keys may be lost.
  /// UNAVAILABLE: nothing was changed. UNKNOWN: it may yet be.
  absl::StatusOr<uint64_t> Apply(const ClusterPlan& plan, bool force);
  /// Back to the placement before the movement under way; returns the epoch of the new layout.
  absl::StatusOr<uint64_t> AbortMove();

  /// What it fetches. This and the following concern the asked node alone: give its address as the only
  /// endpoint.
  absl::StatusOr<NodeMoves> Moves();
  /// Pauses, resumes or slows what the node fetches.
  absl::Status ControlMoves(const MovesControl& control);
  /// The sums of all its ranges; an empty name: of all keyspaces.
  absl::StatusOr<std::vector<RangeDigest>> Digests(const std::string& keyspace);
  /// Look at the totals only; begin a round; begin one and wait until it has ended.
  enum class Repairing { kLook, kStart, kStartAndWait };
  /// Compares the node with its peers, and makes equal what differs.
  absl::StatusOr<RepairTotals> Repair(Repairing what);
  /// With `wait`, when all hints of now are delivered or the time is nearly over.
  absl::StatusOr<HolderHints> Hints(bool wait);
  /// The record of a key as it is on the node.
  absl::StatusOr<RecordDump> NodeDump(const std::string& keyspace, const std::string& key);
  /// Recounts the Merkle sums from disk.
  absl::StatusOr<Verification> NodeVerify();
  /// The numbers that /metrics shows.
  absl::StatusOr<NodeCounters> NodeStats();
  /// All that the node has on disk at this moment, in chunks of so many rows on average (a power of two, 16
  /// to 16,384). Not bound by the timeout.
  absl::StatusOr<std::unique_ptr<NodeBackup>> Backup(uint32_t chunk_rows);

 private:
  struct Stubs;
  /// A channel to an endpoint that answered just now.
  absl::StatusOr<std::unique_ptr<Stubs>> Reach();

  const std::vector<std::string> endpoints_;
  const std::chrono::milliseconds timeout_;
  const std::optional<TlsFiles> tls_;
};

}  // namespace sdk
}  // namespace gyre
