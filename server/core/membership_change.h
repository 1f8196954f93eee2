// What an operator may change in a layout, as functions of layouts.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/core/layout.h"
#include "server/core/plan.h"
#include "server/core/time.h"

namespace gyre {

// A change an operator asked for; answered once, by its ticket.
struct LayoutChange {
  struct Create {
    KeyspaceSpec keyspace;
  };
  struct Set {
    std::string name;
    std::optional<ReplicaCount> r;
    std::optional<ReplicaCount> w;
    std::optional<uint64_t> ttl_ms;
    std::optional<bool> strict;
  };
  struct Drop {
    std::string name;
  };
  // A plan, for the very layout that it was made of: it is never applied to another one.
  struct Members {
    MemberChanges changes;
    uint64_t base_digest = 0;
    uint64_t hash = 0;        // of the plan; the caller has checked it
    uint64_t base_epoch = 0;  // for the sentence when the base is another one
  };
  // Back to the layout before, while data moves to the newest.
  struct Abort {
    std::vector<NodeId> lost;  // newcomers of the newest layout that are not waited for; sorted
  };
  // The members become voters. Nobody has to ask for it: nodes do it by themselves after a movement.
  struct Finish {
    bool renew =
        false;  // also when they are already: with a new layout voters that lost their store vote again
  };
  using What = std::variant<Create, Set, Drop, Members, Abort, Finish>;
  uint64_t ticket = 0;
  Micros deadline;
  What what;
};

// What a change is made of.
struct ChangeBase {
  const View& newest;
  const View* other = nullptr;  // while data moves: the layout before
  std::string progress;         // while data moves: Moves::Progress
};

// The successor of the newest layout with that change, or why there is none. While data moves that is
// FAILED_PRECONDITION for everything but an abort.
absl::StatusOr<Layout> Apply(const ChangeBase& base, const LayoutChange::What& what);

// Whether a layout shows what the change asked for, whoever made it so.
bool Shows(const View& view, const LayoutChange::What& what);

}  // namespace gyre
