// Counting the positions that each member holds.
#include "ring/ownership.h"

#include <cmath>

namespace gyre {

std::vector<Share> SharesOf(const Ring& ring, size_t replicas) {
  std::vector<Share> shares(ring.members().size());
  for (size_t arc = 0; arc < ring.arc_count(); ++arc) {
    const Positions width = TokenRange{ring.ArcBegin(arc), ring.ArcEnd(arc)}.width();
    const auto primaries = ring.PrimariesOfArc(arc, replicas);
    shares[primaries.front()].owned += width;
    for (const MemberIndex member : primaries) shares[member].replicated += width;
  }
  return shares;
}

double FractionOf(Positions positions) { return std::ldexp(static_cast<double>(positions), -64); }

}  // namespace gyre
