// The layout: who is a member, with which tokens, and which keyspaces there are. An immutable value; layouts
// form one line, each the successor of one base.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ring/ring.h"
#include "storage/causal/record.h"

namespace gyre {

// How many replicas must answer, as the user said it.
struct ReplicaCount {
  enum class How : uint8_t { kQuorum = 0, kOne, kAll, kCount };
  How how = How::kQuorum;
  int64_t count = 0;  // for kCount
  bool operator==(const ReplicaCount&) const = default;
};

// The number of answers that `need` means with n replicas; 0 when it asks for none or for more than there
// are.
int CountOf(const ReplicaCount& need, int n);

struct KeyspaceSpec {
  static constexpr size_t kNameBytesMax = 64;
  static constexpr int kReplicasMax = 8;
  static constexpr uint64_t kTtlMsMax = uint64_t{100} * 365 * 24 * 3600 * 1000;  // a hundred years
  uint32_t id = 0;   // never used again, also after a drop
  std::string name;  // letters, digits, '_', '-', '.'; 1 to kNameBytesMax
  int n = 3;
  ReplicaCount r;
  ReplicaCount w;
  ConflictRule conflict = ConflictRule::kSiblings;
  uint64_t ttl_ms = 0;  // 0: values do not expire by themselves
  bool strict = false;  // only primary replicas count, whatever a call says
  bool operator==(const KeyspaceSpec&) const = default;
};

// OK, or INVALID_ARGUMENT naming the field.
absl::Status CheckKeyspace(const KeyspaceSpec& keyspace);

struct Layout {
  static constexpr size_t kKeyspacesMax = 256;
  static constexpr size_t kRemovedMax = size_t{1} << 16;
  uint64_t cluster_id = 0;      // the hash of the first members' ids; the same in all layouts of a cluster
  uint64_t epoch = 0;           // 1 for the first; the base's + 1
  uint64_t base_digest = 0;     // DigestOf(base); 0 for the first
  std::vector<Member> members;  // sorted by id
  std::vector<KeyspaceSpec> keyspaces;  // sorted by id
  uint32_t keyspace_ids_used = 0;       // the highest id ever given
  std::vector<NodeId> voters;           // sorted; who chooses the successor
  // The epoch of the newest layout of the line that moves data, this one included; 0: none did. Whoever works
  // by a layout with a lower one is refused (replica.h).
  uint64_t fence = 0;
  // It goes back from its base, whose movement was not over, to the placement before.
  bool abort = false;
  std::vector<NodeId> lost;     // sorted; members of the base that are given up, with what only they hold
  std::vector<NodeId> removed;  // sorted; were members once, and never are again
  bool operator==(const Layout&) const = default;

  // Rows change hands: its base stays active beside it until they have.
  bool moves() const { return fence == epoch; }
};

// OK, or INVALID_ARGUMENT saying which rule of the fields above is broken: for layouts from disk or from a
// peer. Whether the members make a ring is for MakeView to say.
absl::Status CheckLayout(const Layout& layout);

// A hash of every field: equal layouts have equal digests. Stable over versions of the software.
uint64_t DigestOf(const Layout& layout);

// The first layout of a cluster of these nodes: balanced tokens, one keyspace "default" with N=3, quorums,
// siblings. REQUIRES: nodes not empty.
struct FirstMember {
  NodeId id;
  std::string zone;
  uint32_t weight = 1;
};
Layout FirstLayout(std::vector<FirstMember> nodes);
uint64_t ClusterIdOf(std::vector<NodeId> nodes);  // order does not matter

// The successor of `base` with one keyspace more, changed, or less. INVALID_ARGUMENT names the field;
// ALREADY_EXISTS, NOT_FOUND for names; RESOURCE_EXHAUSTED at kKeyspacesMax.
absl::StatusOr<Layout> WithKeyspace(const Layout& base, KeyspaceSpec keyspace);  // keyspace.id is chosen here
absl::StatusOr<Layout> WithKeyspaceChanged(const Layout& base,
                                           const KeyspaceSpec& keyspace);  // found by name; n, conflict fixed
absl::StatusOr<Layout> WithoutKeyspace(const Layout& base, std::string_view name);

// A layout with what follows from it, computed once and shared by all lanes of a node. Immutable.
struct View {
  Layout layout;
  uint64_t digest = 0;
  Ring ring;
  std::vector<uint16_t> by_name;  // indexes into layout.keyspaces, in the order of their names

  // nullptr when there is no such keyspace.
  const KeyspaceSpec* Keyspace(std::string_view name) const;
  const KeyspaceSpec* Keyspace(uint32_t id) const;
};
// INVALID_ARGUMENT when the members make no ring, or the keyspaces are not sorted by id.
absl::StatusOr<std::shared_ptr<const View>> MakeView(Layout layout);

}  // namespace gyre
