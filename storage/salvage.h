// Copying what can be read of a damaged store into a new one.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>
#include <cstdint>
#include <map>
#include <string>

#include "storage/engine.h"
#include "storage/remains.h"
#include "storage/store.h"

namespace gyre {

struct Salvaged {
  uint64_t rows = 0;
  uint64_t hints = 0;
  uint64_t places = 0;  // passed over because they cannot be read
  absl::Status first;   // what was met at the first of them; OK: none
};

// Copies all rows and hints of `damaged` of which a version can be read, the newest such version of each, and
// the small facts, to `fresh`, which must be empty and is not synced. Its sums are exact, and its index of
// what may be collected is made anew. Asks `go_on` now and then; CANCELLED when that says no. DATA_LOSS: the
// small facts cannot be read (ReadFacts); any other error is one of an engine's, and no damage.
//
// The new store may lack what the old one confirmed. So it gets none of the facts that rest on its rows: not
// the stable cut that it held (a record below that would be no news to it), nor how far it has fetched what a
// new layout gives it; nor the name of its writes, which is for the caller to choose.
//
// An older version, where the newer one cannot be read, is what a replica holds that missed a write: what is
// newer comes from the others. It may also be of a row that was erased after it, when nothing can be read any
// more that says so. That brings no deleted key back, because the new store fills, and while it does its rows
// claim nothing (they travel under cut 0). A row leaves a store in two ways:
// - The stable cut let it go. Who holds that cut covers all at or below it: such a row is no news to a full
//   replica, and leaves the new store when it compares with one. (Where all replicas of it fill, nobody
//   remembers that it went, and it stays: then nothing that might be a write is given up.)
// - The node was not given it any more. Such a row is offered to its replicas under cut 0 and erased again,
//   and erased without that before the node is given it anew (server/core/dropper.h).
// An erased hint is delivered once more, and merged like any that was sent twice.
absl::StatusOr<Salvaged> Salvage(Remains& damaged, Store& fresh, absl::FunctionRef<bool()> go_on);

// The small facts, without the saved sums. DATA_LOSS when not all can be read: then nobody knows which one is
// missing.
absl::StatusOr<std::map<std::string, std::string>> ReadFacts(Engine& engine);

}  // namespace gyre
