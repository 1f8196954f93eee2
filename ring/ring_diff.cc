// Comparing two rings arc by arc.
#include "ring/ring_diff.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gyre {
namespace {

std::vector<Token> EndsOf(const Ring& ring) {
  std::vector<Token> ends(ring.arc_count());
  for (size_t arc = 0; arc < ends.size(); ++arc) ends[arc] = ring.ArcEnd(arc);
  return ends;
}

std::vector<NodeId> PrimariesAt(Placement placement, Token token) {
  std::vector<NodeId> nodes;
  for (const MemberIndex member :
       placement.ring.PrimariesOfArc(placement.ring.ArcOf(token), placement.replicas)) {
    nodes.push_back(placement.ring.members()[member].id);
  }
  return nodes;
}

// Those of `nodes` that are not in `others`, in their order.
std::vector<NodeId> Without(const std::vector<NodeId>& nodes, const std::vector<NodeId>& others) {
  std::vector<NodeId> rest;
  std::ranges::copy_if(nodes, std::back_inserter(rest),
                       [&](NodeId node) { return std::ranges::find(others, node) == others.end(); });
  return rest;
}

std::vector<Replacement> Pair(const std::vector<NodeId>& before, const std::vector<NodeId>& after) {
  const std::vector<NodeId> leavers = Without(before, after);
  const std::vector<NodeId> newcomers = Without(after, before);
  std::vector<Replacement> replacements(std::max(leavers.size(), newcomers.size()));
  for (size_t i = 0; i < leavers.size(); ++i) replacements[i].leaver = leavers[i];
  for (size_t i = 0; i < newcomers.size(); ++i) replacements[i].newcomer = newcomers[i];
  return replacements;
}

}  // namespace

std::vector<RingChange> DiffRings(Placement before, Placement after) {
  // No list changes between two neighbouring ends of either ring.
  std::vector<Token> ends;
  std::ranges::set_union(EndsOf(before.ring), EndsOf(after.ring), std::back_inserter(ends));
  std::vector<RingChange> ranges;
  ranges.reserve(ends.size());
  for (size_t i = 0; i < ends.size(); ++i) {
    const Token begin = ends[i == 0 ? ends.size() - 1 : i - 1];
    ranges.push_back({{begin, ends[i]}, PrimariesAt(before, ends[i]), PrimariesAt(after, ends[i]), {}});
  }
  std::vector<RingChange> changes = MergeNeighbours(
      std::move(ranges),
      [](const RingChange& a, const RingChange& b) { return a.before == b.before && a.after == b.after; });
  std::erase_if(changes, [](const RingChange& change) { return change.before == change.after; });
  for (RingChange& change : changes) change.replacements = Pair(change.before, change.after);
  return changes;
}

}  // namespace gyre
