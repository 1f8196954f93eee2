// What the stable cut means for records: which versions it covers, and what may leave the disk for good.
//
// A stable cut is a counter. Whoever holds one knows of every value and delete at or below it (how that comes
// about: server/core/stable_cut.h), so that a value at or below it which the holder lacks was superseded,
// even where nothing is left that says so. Pure functions.
#pragma once

#include <cstdint>
#include <limits>

#include "storage/causal/record.h"

namespace gyre {

// Takes from `low`, a record read under a lower cut, what `high`, one read under `cut`, proves superseded:
// every version at or below the cut that `high` does not hold. To be done before the two are merged.
void DropBelowCut(Record& low, const Record& high, uint64_t cut);

// Drops what nobody can need any more once all members hold `cut`: versions that expired at or below it
// (their dot and their time), and superseded retries. Nothing is left of a record without versions whose
// whole vector is at or below the cut: a collected tombstone. True when `record` changed.
bool Collect(Record& record, uint64_t cut);

// The lowest cut at which Collect would change the record.
constexpr uint64_t kNeverCollectible = std::numeric_limits<uint64_t>::max();
uint64_t CollectibleFrom(const Record& record);

// What a node has to remember of stable cuts.
struct CutMarks {
  uint64_t confirmed = 0;  // it has promised to take and make nothing at or below this, but from replicas
  uint64_t cut = 0;        // the stable cut that it holds
  bool operator==(const CutMarks&) const = default;
};

// The cut at which a version with this dot and expiry may be dropped.
inline uint64_t ExpiryCut(uint64_t counter, uint64_t expires_ms) {
  if (expires_ms == 0 || expires_ms > MillisOfCounter(kCounterMax)) return kNeverCollectible;
  const uint64_t expiry = CounterOfMillis(expires_ms);
  return counter > expiry ? counter : expiry;
}

}  // namespace gyre
