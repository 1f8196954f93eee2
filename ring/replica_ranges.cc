// Grouping arcs by the set of their primary replicas.
#include "ring/replica_ranges.h"

#include <algorithm>
#include <utility>

namespace gyre {

std::vector<ReplicaRange> ReplicaRangesOf(const Ring& ring, size_t replicas) {
  std::vector<ReplicaRange> ranges;
  ranges.reserve(ring.arc_count());
  for (size_t arc = 0; arc < ring.arc_count(); ++arc) {
    const auto primaries = ring.PrimariesOfArc(arc, replicas);
    ReplicaRange range{{ring.ArcBegin(arc), ring.ArcEnd(arc)}, {primaries.begin(), primaries.end()}};
    std::ranges::sort(range.members);
    ranges.push_back(std::move(range));
  }
  return MergeNeighbours(std::move(ranges),
                         [](const ReplicaRange& a, const ReplicaRange& b) { return a.members == b.members; });
}

}  // namespace gyre
