// Layouts: the rules they keep, and how one follows from another.
#include "server/core/layout.h"

#include <absl/status/status.h>
#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <utility>

#include "ring/balanced.h"
#include "server/core/layout_codec.h"
#include "storage/format/bytes.h"

namespace gyre {
namespace {

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.';
}

std::string Quoted(std::string_view name) { return std::string("'").append(name).append("'"); }

absl::Status CheckName(std::string_view name) {
  if (name.empty())
    return Invalid("name: a keyspace needs a name of 1 to 64 letters, digits, '_', '-' or '.'");
  if (name.size() > KeyspaceSpec::kNameBytesMax) {
    return Invalid("name: " + std::to_string(name.size()) + " bytes are too long; at most " +
                   std::to_string(KeyspaceSpec::kNameBytesMax) + " are allowed");
  }
  if (!std::ranges::all_of(name, IsNameCharacter)) {
    return Invalid("name: only letters, digits, '_', '-' and '.' are allowed");
  }
  return absl::OkStatus();
}

absl::Status CheckCount(const std::string& field, const KeyspaceSpec& keyspace, const ReplicaCount& need) {
  // It would get lost on the wire, and with it the digest.
  if (need.how != ReplicaCount::How::kCount && need.count != 0)
    return Invalid(field + ": a name of a count has no number beside it");
  if (CountOf(need, keyspace.n) > 0) return absl::OkStatus();
  return Invalid(field + ": " + std::to_string(need.count) +
                 " answers cannot be asked of n = " + std::to_string(keyspace.n) + " replicas of keyspace " +
                 Quoted(keyspace.name) + "; name 1 to n, one, quorum or all");
}

template <typename Items, typename Less>
bool StrictlyAscending(const Items& items, Less less) {
  return std::ranges::adjacent_find(items, [&](const auto& a, const auto& b) { return !less(a, b); }) ==
         items.end();
}

bool IdsAscend(const std::vector<KeyspaceSpec>& keyspaces) {
  return StrictlyAscending(keyspaces, [](const auto& a, const auto& b) { return a.id < b.id; });
}

absl::Status CheckKeyspaces(const Layout& layout) {
  if (layout.keyspaces.size() > Layout::kKeyspacesMax) return Invalid("layout: too many keyspaces");
  if (!IdsAscend(layout.keyspaces)) return Invalid("layout: keyspaces are not sorted by id");
  std::vector<std::string_view> names;
  for (const KeyspaceSpec& keyspace : layout.keyspaces) {
    if (const absl::Status status = CheckKeyspace(keyspace); !status.ok()) return status;
    if (keyspace.id == 0 || keyspace.id > layout.keyspace_ids_used) {
      return Invalid("layout: the id of keyspace " + Quoted(keyspace.name) + " was never given");
    }
    names.push_back(keyspace.name);
  }
  std::ranges::sort(names);
  if (std::ranges::adjacent_find(names) != names.end()) return Invalid("layout: two keyspaces of one name");
  return absl::OkStatus();
}

// Of a change that moves no data: what was said of the last movement ends with it.
Layout SuccessorOf(const Layout& base) {
  Layout next = base;
  next.epoch = base.epoch + 1;
  next.base_digest = DigestOf(base);
  next.abort = false;
  next.lost.clear();
  return next;
}

// Sorted ids of nodes, none of which is a member.
bool AreNoMembers(const std::vector<NodeId>& nodes, const Layout& layout) {
  const auto is_member = [&](NodeId node) {
    return std::ranges::binary_search(layout.members, node, {}, &Member::id);
  };
  return (nodes.empty() || nodes.front()) && StrictlyAscending(nodes, std::less<>()) &&
         std::ranges::none_of(nodes, is_member);
}

absl::Status CheckMovement(const Layout& layout) {
  if (layout.fence > layout.epoch || (layout.epoch == 1 && layout.fence != 0)) {
    return Invalid("layout: its fence is above its epoch, or it moves data from nowhere");
  }
  if (layout.abort && (!layout.moves() || layout.epoch < 3)) {
    return Invalid("layout: it goes back from a change that was none");
  }
  if (layout.lost.size() > Ring::kMembersMax || !AreNoMembers(layout.lost, layout)) {
    return Invalid("layout: who is given up is not sorted by id, or still a member");
  }
  if (layout.removed.size() > Layout::kRemovedMax || !AreNoMembers(layout.removed, layout)) {
    return Invalid("layout: who left is not sorted by id, or a member again");
  }
  return absl::OkStatus();
}

auto FindByName(std::vector<KeyspaceSpec>& keyspaces, std::string_view name) {
  return std::ranges::find(keyspaces, name, &KeyspaceSpec::name);
}

absl::Status NoSuchKeyspace(std::string_view name) {
  return absl::NotFoundError("there is no keyspace " + Quoted(name));
}

}  // namespace

int CountOf(const ReplicaCount& need, int n) {
  if (n < 1) return 0;
  switch (need.how) {
    case ReplicaCount::How::kQuorum:
      return n / 2 + 1;
    case ReplicaCount::How::kOne:
      return 1;
    case ReplicaCount::How::kAll:
      return n;
    case ReplicaCount::How::kCount:
      return need.count >= 1 && need.count <= n ? static_cast<int>(need.count) : 0;
  }
  return 0;
}

absl::Status CheckKeyspace(const KeyspaceSpec& keyspace) {
  if (const absl::Status status = CheckName(keyspace.name); !status.ok()) return status;
  if (keyspace.n < 1 || keyspace.n > KeyspaceSpec::kReplicasMax) {
    return Invalid("n: " + std::to_string(keyspace.n) + " replicas are not possible; choose 1 to " +
                   std::to_string(KeyspaceSpec::kReplicasMax));
  }
  if (const absl::Status status = CheckCount("r", keyspace, keyspace.r); !status.ok()) return status;
  if (const absl::Status status = CheckCount("w", keyspace, keyspace.w); !status.ok()) return status;
  if (keyspace.conflict != ConflictRule::kSiblings && keyspace.conflict != ConflictRule::kLastWriteWins) {
    return Invalid("conflict: unknown rule; choose siblings or last-write-wins");
  }
  if (keyspace.ttl_ms > KeyspaceSpec::kTtlMsMax) {
    return Invalid("ttl: " + std::to_string(keyspace.ttl_ms) + " ms are too long; at most " +
                   std::to_string(KeyspaceSpec::kTtlMsMax) + " (a hundred years) are allowed");
  }
  return absl::OkStatus();
}

absl::Status CheckLayout(const Layout& layout) {
  if (layout.cluster_id == 0) return Invalid("layout: no cluster id");
  if (layout.epoch == 0) return Invalid("layout: epoch 0");
  if (layout.epoch == 1 && layout.base_digest != 0) return Invalid("layout: the first one has a base");
  if (layout.members.empty() || layout.members.size() > Ring::kMembersMax) {
    return Invalid("layout: " + std::to_string(layout.members.size()) + " members; it must have 1 to " +
                   std::to_string(Ring::kMembersMax));
  }
  if (!layout.members.front().id ||
      !StrictlyAscending(layout.members, [](const auto& a, const auto& b) { return a.id < b.id; })) {
    return Invalid("layout: members are not sorted by id");
  }
  if (layout.voters.empty() || layout.voters.size() > Ring::kMembersMax || !layout.voters.front() ||
      !StrictlyAscending(layout.voters, [](NodeId a, NodeId b) { return a < b; })) {
    return Invalid("layout: voters are missing, or not sorted by id");
  }
  if (const absl::Status status = CheckMovement(layout); !status.ok()) return status;
  return CheckKeyspaces(layout);
}

uint64_t DigestOf(const Layout& layout) {
  ByteWriter bytes(0);
  WriteLayout(bytes, layout);
  return TokenOf(bytes.Finish()).value;
}

uint64_t ClusterIdOf(std::vector<NodeId> nodes) {
  std::ranges::sort(nodes);
  std::string text;
  for (const NodeId node : nodes) text.append(ToString(node)).push_back('\n');
  const uint64_t hash = TokenOf(text).value;
  return hash == 0 ? 1 : hash;  // 0 says "no cluster"
}

Layout FirstLayout(std::vector<FirstMember> nodes) {
  assert(!nodes.empty());
  std::ranges::sort(nodes, {}, &FirstMember::id);
  Layout layout;
  layout.epoch = 1;
  for (FirstMember& node : nodes) {
    layout.members.push_back(
        {.id = node.id, .zone = std::move(node.zone), .weight = node.weight, .tokens = {}});
    layout.voters.push_back(node.id);
  }
  layout.cluster_id = ClusterIdOf(layout.voters);
  layout.keyspace_ids_used = 1;
  layout.keyspaces.push_back({.id = 1, .name = "default", .r = {}, .w = {}});
  layout.members = BalancedTokens({}, std::move(layout.members), static_cast<size_t>(layout.keyspaces[0].n));
  return layout;
}

absl::StatusOr<Layout> WithKeyspace(const Layout& base, KeyspaceSpec keyspace) {
  if (absl::Status status = CheckKeyspace(keyspace); !status.ok()) return status;
  Layout next = SuccessorOf(base);
  if (FindByName(next.keyspaces, keyspace.name) != next.keyspaces.end()) {
    return absl::AlreadyExistsError("there is a keyspace " + Quoted(keyspace.name) + " already");
  }
  if (next.keyspaces.size() >= Layout::kKeyspacesMax ||
      next.keyspace_ids_used == std::numeric_limits<uint32_t>::max()) {
    return absl::ResourceExhaustedError("there are " + std::to_string(next.keyspaces.size()) +
                                        " keyspaces, and no more are possible; drop one first");
  }
  keyspace.id = ++next.keyspace_ids_used;
  next.keyspaces.push_back(std::move(keyspace));
  return next;
}

absl::StatusOr<Layout> WithKeyspaceChanged(const Layout& base, const KeyspaceSpec& keyspace) {
  Layout next = SuccessorOf(base);
  const auto found = FindByName(next.keyspaces, keyspace.name);
  if (found == next.keyspaces.end()) return NoSuchKeyspace(keyspace.name);
  if (absl::Status status = CheckKeyspace(keyspace); !status.ok()) return status;
  if (keyspace.n != found->n) {
    return Invalid("n: keyspace " + Quoted(keyspace.name) + " has " + std::to_string(found->n) +
                   " replicas, which cannot be changed");
  }
  if (keyspace.conflict != found->conflict) {
    return Invalid("conflict: the rule of keyspace " + Quoted(keyspace.name) + " cannot be changed");
  }
  const uint32_t id = found->id;
  *found = keyspace;
  found->id = id;
  return next;
}

absl::StatusOr<Layout> WithoutKeyspace(const Layout& base, std::string_view name) {
  Layout next = SuccessorOf(base);
  const auto found = FindByName(next.keyspaces, name);
  if (found == next.keyspaces.end()) return NoSuchKeyspace(name);
  next.keyspaces.erase(found);
  return next;
}

const KeyspaceSpec* View::Keyspace(std::string_view name) const {
  const auto name_of = [&](uint16_t index) { return std::string_view(layout.keyspaces[index].name); };
  const auto found = std::ranges::lower_bound(by_name, name, {}, name_of);
  return found != by_name.end() && name_of(*found) == name ? &layout.keyspaces[*found] : nullptr;
}

const KeyspaceSpec* View::Keyspace(uint32_t id) const {
  const auto found = std::ranges::lower_bound(layout.keyspaces, id, {}, &KeyspaceSpec::id);
  return found != layout.keyspaces.end() && found->id == id ? &*found : nullptr;
}

absl::StatusOr<std::shared_ptr<const View>> MakeView(Layout layout) {
  if (layout.keyspaces.size() > Layout::kKeyspacesMax || !IdsAscend(layout.keyspaces)) {
    return Invalid("layout: keyspaces are too many, or not sorted by id");
  }
  absl::StatusOr<Ring> ring = Ring::Build(layout.members);
  if (!ring.ok()) return ring.status();
  std::vector<uint16_t> by_name;
  for (size_t i = 0; i < layout.keyspaces.size(); ++i) by_name.push_back(static_cast<uint16_t>(i));
  std::ranges::sort(by_name, {},
                    [&](uint16_t index) -> const std::string& { return layout.keyspaces[index].name; });
  const uint64_t digest = DigestOf(layout);
  return std::make_shared<const View>(View{std::move(layout), digest, *std::move(ring), std::move(by_name)});
}

}  // namespace gyre
