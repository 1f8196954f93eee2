// The line of layouts: what may follow what. Functions of layouts.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <vector>

#include "server/core/layout.h"

namespace gyre {

// The ids of its members, sorted.
std::vector<NodeId> MembersOf(const Layout& layout);

// OK, or INVALID_ARGUMENT saying why `next` can be no successor of `base`, whatever is known of the movement
// to `base`. What only an abort's other layout shows is for IsAbortOf.
//
// A layout that moves data keeps its base's voters, and is made only of a base whose members are its voters:
// newcomers that die at once must not block the way back.
absl::Status CheckSuccessor(const Layout& base, const Layout& next);

// Goes back from `aborted`, whose movement is not over, to the placement of `before`, its base. `lost`:
// newcomers of `aborted` that are not waited for. REQUIRES: aborted.moves() and not aborted.abort.
Layout AbortOf(const Layout& aborted, const Layout& before, std::vector<NodeId> lost);
bool IsAbortOf(const Layout& aborted, const Layout& before, const Layout& next);

// `base`, whose movement is over, with its members as voters. FAILED_PRECONDITION when they are already,
// unless with `renew`.
absl::StatusOr<Layout> Finished(const Layout& base, bool renew);

}  // namespace gyre
