// The stable cut on records.
#include "storage/causal/stable_cut.h"

#include <algorithm>

namespace gyre {

void DropBelowCut(Record& low, const Record& high, uint64_t cut) {
  std::erase_if(low.versions, [&](const Version& version) {
    if (version.dot.counter > cut) return false;
    const auto at = std::lower_bound(high.versions.begin(), high.versions.end(), version.dot,
                                     [](const Version& held, const Dot& dot) { return held.dot < dot; });
    return at == high.versions.end() || at->dot != version.dot;
  });
}

bool Collect(Record& record, uint64_t cut) {
  const size_t versions = std::erase_if(record.versions, [&](const Version& version) {
    return ExpiryCut(version.dot.counter, version.expires_ms) <= cut;
  });
  const size_t superseded =
      std::erase_if(record.superseded, [&](const SupersededRetry& retry) { return retry.by.counter <= cut; });
  const bool gone = record.tombstone() && record.seen.Max() <= cut;
  if (gone) record = {};
  return versions > 0 || superseded > 0 || gone;
}

uint64_t CollectibleFrom(const Record& record) {
  uint64_t from = record.tombstone() ? record.seen.Max() : kNeverCollectible;
  for (const Version& version : record.versions) {
    from = std::min(from, ExpiryCut(version.dot.counter, version.expires_ms));
  }
  for (const SupersededRetry& retry : record.superseded) from = std::min(from, retry.by.counter);
  return from;
}

}  // namespace gyre
