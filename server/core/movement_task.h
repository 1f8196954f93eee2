// What one node has to fetch because a layout gives it: tasks, as a pure function of two layouts, and their
// progress as bytes on disk.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/core/key_span.h"
#include "server/core/layouts.h"
#include "server/core/message.h"

namespace gyre {

// How far a task is. Told apart from the task, which both layouts say.
struct MoveProgress {
  std::string after;  // row key up to which rows were fetched, and are durable; empty: none
  NodeId source;      // from whom; zero: not begun
  bool fetched = false;
  bool mixed = false;            // not all came from the replica that is replaced: it has to compare, too
  std::vector<NodeId> compared;  // with whom it did since
  bool done = false;
  uint64_t keys = 0;   // fetched
  uint64_t bytes = 0;  // of their keys and records
  bool operator==(const MoveProgress&) const = default;
};

struct MoveTask {
  uint32_t keyspace = 0;
  TokenRange range;  // does not wrap
  KeySpan span;
  NodeId leaver;  // whose place this node takes; zero: nobody's
  std::vector<NodeId>
      before;          // the replicas before, most preferred first, without this node and those given up
  bool stays = false;  // this node was one of them: the number of replicas changes
  MoveProgress progress;

  double FractionDone() const;  // of the range's tokens, that were fetched
};

// What `self` fetches, in an order that every life of it finds again.
// REQUIRES: layouts.moving().
std::vector<MoveTask> MoveTasksOf(const Layouts& layouts, NodeId self);

// What a node remembers of a movement.
struct MoveState {
  uint64_t fence = 0;   // of the layout that moves; 0: none yet
  uint64_t digest = 0;  // of that layout
  bool ready = false;   // what it held of old in what it is given is gone
  MoveControl control;
  std::vector<MoveProgress> progress;  // in the order of the tasks
  bool operator==(const MoveState&) const = default;
};
std::string EncodeMoveState(const MoveState& state);
// DATA_LOSS for anything that EncodeMoveState does not write, UNIMPLEMENTED for a format of a later version.
absl::StatusOr<MoveState> DecodeMoveState(std::string_view bytes);

}  // namespace gyre
