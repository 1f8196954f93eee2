// What nodes say to each other about membership: the messages of ControlMessage in proto/peer.proto, as
// values.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ring/ring.h"
#include "ring/token.h"
#include "server/core/layout.h"
#include "server/core/layouts.h"
#include "storage/format/row_totals.h"

namespace gyre {

struct NodeFactsValue {
  uint64_t keys = 0;
  uint64_t bytes = 0;
  std::map<uint32_t, RowTotals> rows;    // by keyspace; of one that is not counted yet there is none
  std::map<NodeId, uint64_t> hints_for;  // hints that it holds, by the node that they are for
  uint64_t collectible = 0;              // rows of which a stable cut will collect something
  uint64_t unequal_ranges = 0;           // that the last comparison with another replica did not find equal
  bool filling = false;   // its store was lost, and it has not compared what it has with all replicas
  bool dropping = false;  // it may still hold rows that it is given no more, and counts them
  uint64_t layout_epoch = 0;
  std::string version;
  bool operator==(const NodeFactsValue&) const = default;
};

// What one node says of itself.
struct NodeInfoValue {
  static constexpr size_t kTextBytesMax = 255;  // of each of its texts
  NodeId id;
  std::string address;  // clients and admin
  std::string peer_address;
  std::string zone;
  uint32_t weight = 1;
  uint64_t generation = 0;  // wall milliseconds of its start: the later one is right
  uint64_t heartbeat = 0;
  NodeFactsValue facts;
  bool operator==(const NodeInfoValue&) const = default;
};

struct Ballot {
  uint64_t round = 0;  // 0: none
  NodeId node;
  auto operator<=>(const Ballot&) const = default;
};

namespace control {

// The newest heartbeat that the sender heard of a member, and whether it waited in vain for a later one.
struct Beat {
  NodeId node;
  uint64_t generation = 0;
  uint64_t heartbeat = 0;
  bool suspect = false;
  bool operator==(const Beat&) const = default;
};
// How far a member is with the newest layout.
struct MemberStep {
  NodeId node;
  MoveStep step = MoveStep::kNone;
  bool operator==(const MemberStep&) const = default;
};
// Of the members of two layouts at most; what is beyond is not taken.
inline constexpr size_t kStepsMax = 2 * Ring::kMembersMax;

struct Hello {
  static constexpr size_t kKnownMax = 256;  // a node that knows more tells of the others in later ones
  static constexpr size_t kBeatsMax = Ring::kMembersMax;
  int bootstrap_expect = 0;
  std::vector<NodeInfoValue> known;  // the sender first
  std::vector<Beat> beats;           // of the other members
  uint64_t layout_epoch = 0;
  uint64_t layout_digest = 0;
  bool answer_wanted = false;
  std::vector<MemberStep> steps;  // with the layout of layout_epoch, if that moves data
};
struct FormationPromise {
  int bootstrap_expect = 0;
  std::vector<NodeInfoValue> nodes;  // sorted by id
  bool operator==(const FormationPromise&) const = default;
};
struct Prepare {
  uint64_t base_epoch = 0;
  uint64_t base_digest = 0;
  Ballot ballot;
};
struct Prepared {
  uint64_t base_epoch = 0;
  uint64_t base_digest = 0;
  Ballot ballot;
  bool promised = false;  // false: `highest` was promised before
  Ballot highest;
  Ballot accepted_ballot;  // round 0: nothing accepted yet
  std::optional<Layout> accepted;
};
struct Accept {
  uint64_t base_epoch = 0;
  uint64_t base_digest = 0;
  Ballot ballot;
  Layout layout;
};
struct Accepted {
  uint64_t base_epoch = 0;
  uint64_t base_digest = 0;
  Ballot ballot;
  bool accepted = false;  // false: `highest` was promised before
  Ballot highest;
};
struct LayoutPush {
  Layout layout;                  // chosen: final
  std::optional<Layout> other;    // its base, if that is active beside it. Without: it has retired
  std::vector<MemberStep> steps;  // as the sender knows them, if `layout` moves data
};
struct LayoutWanted {};
using Body =
    std::variant<Hello, FormationPromise, Prepare, Prepared, Accept, Accepted, LayoutPush, LayoutWanted>;

struct Message {
  uint64_t cluster_id = 0;  // 0: not formed yet
  NodeId from;
  std::string from_address;  // where the sender's peers reach it
  Body body;
};

}  // namespace control
}  // namespace gyre
