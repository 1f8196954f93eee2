// The ring as ranges that the same members hold: what scans and digests walk over.
#pragma once

#include <cstddef>
#include <vector>

#include "ring/ring.h"
#include "ring/token_range.h"

namespace gyre {

struct ReplicaRange : TokenRange {
  std::vector<MemberIndex> members;  // the primary replicas, sorted by index and not by preference
  bool operator==(const ReplicaRange&) const = default;
};

// The maximal ranges whose primary replicas are the same set, ordered by `end`; only the first may wrap.
// Together they cover the ring exactly once. When all are the same it is one range, kWholeRing. REQUIRES: 1
// <= replicas <= Ring::kPreferencesMax.
std::vector<ReplicaRange> ReplicaRangesOf(const Ring& ring, size_t replicas);

}  // namespace gyre
