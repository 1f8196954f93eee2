// A node's store: opened, claimed for its node, and rebuilt when it is damaged.
//
// A damaged store is set aside, and a new one is made of what can be read of it, which fills like one that
// was lost. What is set aside is kept until the node is full: it may be the last copy of something. Three
// directories beside `store` say how far that is, whenever the process ends (storage/FORMAT.md).
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>
#include <cstdint>
#include <memory>
#include <string>

#include "server/core/layout.h"
#include "server/identity.h"
#include "server/store_damage.h"
#include "storage/engine.h"

namespace gyre {

struct NodeStore {
  std::unique_ptr<Engine> engine;
  bool filling = false;     // it may lack what its node confirmed
  bool set_aside = false;   // what it was rebuilt from is still there
  uint64_t rebuilt_ms = 0;  // since 1970; 0: never
};

// Opens the store beside `identity`, or makes a new one. It is rebuilt first when `damage` has met some and
// there is room for that, when it cannot be opened because it is damaged, or when a rebuild has not ended;
// `damage` then forgets it. From
// then on it is told of all that is met. `go_on` is asked now and then while that lasts. Errors, each a
// sentence: DATA_LOSS            it is damaged and cannot be rebuilt: the sentence says what can be done;
// FAILED_PRECONDITION  it belongs to another node;
// CANCELLED            `go_on` said no; the next start goes on;
// UNAVAILABLE          the disk refuses.
absl::StatusOr<NodeStore> OpenNodeStore(Identity& identity, StoreDamage& damage,
                                        absl::FunctionRef<bool()> go_on);

// What a second store beside the first takes on the disk, and what there is.
struct DiskRoom {
  uint64_t needed_bytes = 0;
  uint64_t free_bytes = 0;
};
// Reads the directory of the store, and no file of it.
DiskRoom RoomToRebuild(const Identity& identity);

// Why a store that was found damaged must not be rebuilt now; empty: it may be. `view`: nullptr before the
// cluster has formed. `all_up`: so are all other members.
std::string ObstacleToRebuild(const NodeStore& store, const View* view, bool all_up, const DiskRoom& room,
                              uint64_t wall_ms);

// Removes what was set aside. To be called once the node is durably full.
absl::Status RemoveSetAside(const Identity& identity);

}  // namespace gyre
