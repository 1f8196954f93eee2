// Between plans on the wire and their values.
#include "server/rpc/convert_plan.h"

#include <set>
#include <string>

namespace gyre {
namespace {

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

class Resolver {
 public:
  Resolver(const View& view, const ClusterState::Known& known) : known_(known) {
    for (const Member& member : view.layout.members) ids_.insert(ToString(member.id));
    for (const auto& [id, info] : known) ids_.insert(ToString(id));
  }

  absl::StatusOr<NodeId> Find(const std::string& name) const {
    const auto first = ids_.lower_bound(name);
    if (name.empty() || first == ids_.end() || !first->starts_with(name)) {
      return Invalid("there is no node '" + name +
                     "': members and nodes that have announced themselves are listed " +
                     "by gyre cluster status");
    }
    if (const auto second = std::next(first); second != ids_.end() && second->starts_with(name)) {
      return Invalid("the node '" + name + "' could be " + *first + " or " + *second +
                     ": name more of its id");
    }
    NodeId id;
    ParseNodeId(*first, id);
    return id;
  }

  absl::StatusOr<MemberChanges::Newcomer> FindNewcomer(const std::string& name) const {
    const absl::StatusOr<NodeId> id = Find(name);
    if (!id.ok()) return id.status();
    const auto info = known_.find(*id);
    if (info == known_.end()) return MemberChanges::Newcomer{.node = *id};  // a member: refused later
    return MemberChanges::Newcomer{.node = *id, .zone = info->second.zone, .weight = info->second.weight};
  }

  // `entries`, as a map by node of `value` of each.
  template <typename Value, typename Entries, typename Get>
  absl::Status Fill(const char* what, const Entries& entries, Get value, std::map<NodeId, Value>& to) const {
    for (const auto& entry : entries) {
      const absl::StatusOr<NodeId> id = Find(entry.node());
      if (!id.ok()) return id.status();
      if (!to.emplace(*id, value(entry)).second) {
        return Invalid(std::string(what) + " of node " + ToString(*id) + " is given twice; give it once");
      }
    }
    return absl::OkStatus();
  }

 private:
  const ClusterState::Known& known_;
  std::set<std::string, std::less<>> ids_;
};

}  // namespace

absl::StatusOr<MemberChanges> ToMemberChanges(const View& view, const ClusterState::Known& known,
                                              const v1::MemberChanges& from) {
  const Resolver resolver(view, known);
  MemberChanges to;
  for (const std::string& name : from.add()) {
    absl::StatusOr<MemberChanges::Newcomer> node = resolver.FindNewcomer(name);
    if (!node.ok()) return node.status();
    to.add.push_back(*std::move(node));
  }
  for (const std::string& name : from.remove()) {
    const absl::StatusOr<NodeId> node = resolver.Find(name);
    if (!node.ok()) return node.status();
    to.remove.push_back(*node);
  }
  for (const v1::MemberChanges::Replace& replace : from.replace()) {
    const absl::StatusOr<NodeId> old = resolver.Find(replace.old());
    if (!old.ok()) return old.status();
    absl::StatusOr<MemberChanges::Newcomer> by = resolver.FindNewcomer(replace.by());
    if (!by.ok()) return by.status();
    to.replace.push_back({*old, *std::move(by)});
  }
  const auto number = [](const auto& entry) { return entry.number(); };
  const auto zone = [](const auto& entry) { return entry.zone(); };
  if (absl::Status status = resolver.Fill("weight", from.weight(), number, to.weight); !status.ok())
    return status;
  if (absl::Status status = resolver.Fill("zone", from.zone(), zone, to.zone); !status.ok()) return status;
  if (absl::Status status = resolver.Fill("tokens", from.tokens(), number, to.tokens); !status.ok())
    return status;
  for (const v1::MemberChanges::ReplicaNumber& n : from.n()) {
    if (n.n() > KeyspaceSpec::kReplicasMax) {
      return Invalid("keyspace '" + n.keyspace() + "': n: " + std::to_string(n.n()) +
                     " replicas are not possible; choose 1 to " + std::to_string(KeyspaceSpec::kReplicasMax));
    }
    if (!to.keyspace_n.emplace(n.keyspace(), static_cast<int>(n.n())).second) {
      return Invalid("n of keyspace '" + n.keyspace() + "' is given twice; give it once");
    }
  }
  return to;
}

void FromMemberChanges(const MemberChanges& from, v1::MemberChanges& to) {
  for (const MemberChanges::Newcomer& node : from.add) to.add_add(ToString(node.node));
  for (const NodeId node : from.remove) to.add_remove(ToString(node));
  for (const MemberChanges::Replacement& replacement : from.replace) {
    v1::MemberChanges::Replace& out = *to.add_replace();
    out.set_old(ToString(replacement.old));
    out.set_by(ToString(replacement.by.node));
  }
  const auto fill = [](const std::map<NodeId, uint32_t>& numbers, auto& out) {
    for (const auto& [node, number] : numbers) {
      v1::MemberChanges::Number& one = *out.Add();
      one.set_node(ToString(node));
      one.set_number(number);
    }
  };
  fill(from.weight, *to.mutable_weight());
  for (const auto& [node, zone] : from.zone) {
    v1::MemberChanges::Zone& out = *to.add_zone();
    out.set_node(ToString(node));
    out.set_zone(zone);
  }
  fill(from.tokens, *to.mutable_tokens());
  for (const auto& [keyspace, n] : from.keyspace_n) {
    v1::MemberChanges::ReplicaNumber& out = *to.add_n();
    out.set_keyspace(keyspace);
    out.set_n(static_cast<uint32_t>(n));
  }
}

void FromPlan(const Plan& from, v1::PlanReply& to) {
  to.set_base_epoch(from.base_epoch);
  to.set_base_digest(from.base_digest);
  to.set_hash(from.hash);
  FromMemberChanges(from.changes, *to.mutable_changes());
  for (const Plan::Move& move : from.moves) {
    v1::PlannedMove& out = *to.add_moves();
    out.set_from(ToString(move.from));
    out.set_to(ToString(move.to));
    out.set_ranges(move.ranges);
    out.set_keys(move.rows.rows);
    out.set_bytes(move.rows.bytes);
  }
  const auto fill = [](const Balance& balance, v1::Balance& out) {
    out.set_owned(balance.owned);
    out.set_replicated(balance.replicated);
  };
  fill(from.before, *to.mutable_before());
  fill(from.after, *to.mutable_after());
  for (const std::string& sentence : from.warnings) to.add_warnings(sentence);
  for (const std::string& sentence : from.loss) to.add_loss(sentence);
}

}  // namespace gyre
