// A turn to test parts of a node in, records to show them, and what they asked for.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "server/core/describe.h"
#include "server/core/replica_set.h"
#include "server/core/turn.h"

namespace gyre {

inline constexpr NodeId kA{1};
inline constexpr NodeId kB{2};
inline constexpr NodeId kC{3};

// A cluster of these three, in which everyone holds every key of "default".
inline std::shared_ptr<const View> ThreeNodes(std::vector<KeyspaceSpec> more = {}) {
  Layout layout = FirstLayout({{kA, ""}, {kB, ""}, {kC, ""}});
  for (KeyspaceSpec& keyspace : more) layout = *WithKeyspace(layout, std::move(keyspace));
  return *MakeView(std::move(layout));
}

struct TurnOfA {
  Layouts layouts = {.view = ThreeNodes()};
  const std::shared_ptr<const View>& view = layouts.view;
  absl::flat_hash_set<NodeId> up = {kA, kB, kC};
  Outbox out;
  Turn turn{{.steady = Seconds(1), .wall_ms = 1'000'000}, kA, layouts, up, out};

  // Whom something was sent to, in order, and forgets it.
  std::vector<NodeId> Asked() {
    std::vector<NodeId> to;
    for (const Outbox::Send& send : out.sends) to.push_back(send.to);
    out.sends.clear();
    return to;
  }
};

inline ReplicaSet SetOf(const View& view, int n) {
  const MemberIndex members[] = {0, 1, 2};
  return ReplicaSet::OfMembers(view, members, n);
}

inline RecordBytes Encoded(const Record& record) {
  return std::make_shared<const std::string>(EncodeRecord(record));
}

// One value under one dot of a node's first incarnation.
inline Record RecordOf(const std::string& value, NodeId node, uint64_t counter) {
  Record record;
  ApplyPut(record, {.dot = {{node.value, 1}, counter}, .value = value}, nullptr);
  return record;
}

}  // namespace gyre
