// Plans: what an operator wants changed about the members, and exactly what that moves.
//
// A plan is a pure function of the base layout, the changes, and what the members say of their keys: whoever
// has these computes the same. Nothing is staged anywhere: applying sends the changes and the plan's hash,
// and the server computes again.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ring/ring.h"
#include "server/core/layout.h"
#include "storage/format/row_totals.h"

namespace gyre {

struct MemberChanges {
  struct Newcomer {
    NodeId node;
    std::string zone;  // as it says of itself
    uint32_t weight = 1;
    bool operator==(const Newcomer&) const = default;
  };
  struct Replacement {
    NodeId old;
    Newcomer by;
    bool operator==(const Replacement&) const = default;
  };
  std::vector<Newcomer> add;
  std::vector<NodeId> remove;
  std::vector<Replacement> replace;  // the newcomer takes over tokens and weight, and keeps its own zone
  // Of those who are members afterwards, newcomers included.
  std::map<NodeId, uint32_t> weight;
  std::map<NodeId, std::string> zone;
  std::map<NodeId, uint32_t> tokens;
  std::map<std::string, int> keyspace_n;
  std::vector<NodeId> lost;  // sorted; of those that leave, who is given up (apply --force)
  bool operator==(const MemberChanges&) const = default;
  bool empty() const { return *this == MemberChanges{}; }
};

constexpr uint32_t kWeightMax = 1000;
constexpr size_t kZoneBytesMax = 64;

// Whether the members are the voters, so that members may be changed: after a movement, with the layout
// after.
bool IsFinished(const Layout& layout);

// The successor of `base` with these changes. INVALID_ARGUMENT names the node or field that is wrong, and
// why; FAILED_PRECONDITION when the base is not one that may be changed so. A pure function.
absl::StatusOr<Layout> WithMembers(const Layout& base, const MemberChanges& changes);

// A hash over the base and everything that `next`, its successor, says: which arcs, and of whom. Not over who
// is given up, which is decided when a plan is applied, and not over estimates.
uint64_t PlanHash(const Layout& next);

// What is known of a node when a plan is made.
struct NodeStatistics {
  bool up = false;
  bool filling = false;                // it has lost its store, and cannot answer reads
  bool dropping = false;               // `rows` counts some that it is given no more
  std::map<uint32_t, RowTotals> rows;  // by keyspace, as it last said; estimates
};
using ClusterStatistics = std::map<NodeId, NodeStatistics>;  // a node that is not in it is down

// The largest share that a member has of what all have, over its share by weight: 1 is even.
struct Balance {
  double owned = 0;
  double replicated = 0;  // with the replicas of the keyspace "default", else of the first one
  bool operator==(const Balance&) const = default;
};

struct Plan {
  // What `to` fetches from `from`.
  struct Move {
    NodeId from;
    NodeId to;
    uint64_t ranges = 0;  // maximal ones that change hands in one way, of all keyspaces
    RowTotals rows;       // estimates
    bool operator==(const Move&) const = default;
  };
  uint64_t base_epoch = 0;
  uint64_t base_digest = 0;
  uint64_t hash = 0;
  MemberChanges changes;
  Layout next;
  std::vector<Move> moves;  // ordered by from, to
  Balance before;
  Balance after;
  std::vector<std::string> warnings;  // sentences
  // Sentences: what may be lost, because a node leaves and too few of those who hold the same can be read.
  // Not empty: only to be applied by force.
  std::vector<std::string> loss;
  std::vector<NodeId> leaving_down;  // sorted; who leaves and cannot be asked: given up by force
};

// Errors as of WithMembers. A pure function.
absl::StatusOr<Plan> MakePlan(const View& base, const MemberChanges& changes,
                              const ClusterStatistics& statistics);

}  // namespace gyre
