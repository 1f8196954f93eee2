// Between the membership messages on the wire and their values.
#include "server/rpc/convert_control.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/rpc/convert_kv.h"

namespace gyre {
namespace {

constexpr uint32_t kControlFormat = 1;
constexpr char kSiblings[] = "siblings";
constexpr char kLastWriteWins[] = "last-write-wins";

absl::Status Refused(const char* why) {
  return absl::InvalidArgumentError(std::string("membership message: ") + why);
}

Ballot ToBallot(const v1::Ballot& from) { return {from.round(), NodeId{from.node()}}; }

void FromBallot(const Ballot& from, v1::Ballot& to) {
  to.set_round(from.round);
  to.set_node(from.node.value);
}

NodeInfoValue ToInfo(const v1::NodeInfo& from) {
  std::map<NodeId, uint64_t> hints_for;
  for (const auto& [node, hints] : from.facts().hints_for()) hints_for[NodeId{node}] = hints;
  std::map<uint32_t, RowTotals> rows;
  for (const v1::KeyspaceRows& each : from.facts().rows()) {
    rows[each.keyspace()] = {.rows = each.rows(), .bytes = each.bytes()};
  }
  return {.id = NodeId{from.id()},
          .address = from.address(),
          .peer_address = from.peer_address(),
          .zone = from.zone(),
          .weight = from.weight(),
          .generation = from.generation(),
          .heartbeat = from.heartbeat(),
          .facts = {.keys = from.facts().keys(),
                    .bytes = from.facts().bytes(),
                    .rows = std::move(rows),
                    .hints_for = std::move(hints_for),
                    .collectible = from.facts().collectible(),
                    .unequal_ranges = from.facts().unequal_ranges(),
                    .filling = from.facts().filling(),
                    .dropping = from.facts().dropping(),
                    .layout_epoch = from.facts().layout_epoch(),
                    .version = from.facts().version()}};
}

void FromInfo(const NodeInfoValue& from, v1::NodeInfo& to) {
  to.set_id(from.id.value);
  to.set_address(from.address);
  to.set_peer_address(from.peer_address);
  to.set_zone(from.zone);
  to.set_weight(from.weight);
  to.set_generation(from.generation);
  to.set_heartbeat(from.heartbeat);
  FromFacts(from.facts, *to.mutable_facts());
}

absl::StatusOr<Layout> ToLayout(const v1::Layout& from) {
  Layout layout = {.cluster_id = from.cluster_id(),
                   .epoch = from.epoch(),
                   .base_digest = from.base_digest(),
                   .keyspace_ids_used = from.keyspace_ids_used(),
                   .fence = from.fence(),
                   .abort = from.abort()};
  for (const v1::LayoutMember& member : from.members()) {
    Member to = {.id = NodeId{member.id()}, .zone = member.zone(), .weight = member.weight()};
    to.tokens.reserve(static_cast<size_t>(member.tokens_size()));
    for (const uint64_t token : member.tokens()) to.tokens.push_back(Token{token});
    layout.members.push_back(std::move(to));
  }
  for (const v1::Keyspace& keyspace : from.keyspaces()) {
    absl::StatusOr<KeyspaceSpec> to = ToKeyspace(keyspace);
    if (!to.ok()) return to.status();
    layout.keyspaces.push_back(*std::move(to));
  }
  for (const uint64_t voter : from.voters()) layout.voters.push_back(NodeId{voter});
  for (const uint64_t node : from.lost()) layout.lost.push_back(NodeId{node});
  for (const uint64_t node : from.removed()) layout.removed.push_back(NodeId{node});
  return layout;
}

void FromLayout(const Layout& from, v1::Layout& to) {
  to.set_cluster_id(from.cluster_id);
  to.set_epoch(from.epoch);
  to.set_base_digest(from.base_digest);
  to.set_keyspace_ids_used(from.keyspace_ids_used);
  for (const Member& member : from.members) {
    v1::LayoutMember& out = *to.add_members();
    out.set_id(member.id.value);
    out.set_zone(member.zone);
    out.set_weight(member.weight);
    for (const Token token : member.tokens) out.add_tokens(token.value);
  }
  for (const KeyspaceSpec& keyspace : from.keyspaces) FromKeyspace(keyspace, *to.add_keyspaces());
  for (const NodeId voter : from.voters) to.add_voters(voter.value);
  to.set_fence(from.fence);
  to.set_abort(from.abort);
  for (const NodeId node : from.lost) to.add_lost(node.value);
  for (const NodeId node : from.removed) to.add_removed(node.value);
}

// Unknown steps are of a version that comes later: the highest that this one knows is true of them, too.
std::vector<control::MemberStep> ToSteps(const google::protobuf::RepeatedPtrField<v1::Step>& from) {
  std::vector<control::MemberStep> steps;
  steps.reserve(static_cast<size_t>(from.size()));
  for (const v1::Step& each : from) {
    const auto step = std::min<uint32_t>(each.step(), static_cast<uint32_t>(MoveStep::kDone));
    steps.push_back({NodeId{each.node()}, static_cast<MoveStep>(step)});
  }
  return steps;
}

void FromSteps(const std::vector<control::MemberStep>& from,
               google::protobuf::RepeatedPtrField<v1::Step>& to) {
  for (const control::MemberStep& each : from) {
    v1::Step& out = *to.Add();
    out.set_node(each.node.value);
    out.set_step(static_cast<uint32_t>(each.step));
  }
}

// Round 0 stands for "none": a vote under it would be forgotten, and its store be taken for damaged.
template <typename Wire>
bool HasBallot(const Wire& from) {
  return from.ballot().round() > 0 && from.ballot().node() != 0;
}

// The fields that all of Paxos' messages share.
template <typename Value, typename Wire>
Value ToPaxos(const Wire& from) {
  Value value;
  value.base_epoch = from.base_epoch();
  value.base_digest = from.base_digest();
  value.ballot = ToBallot(from.ballot());
  return value;
}

template <typename Value, typename Wire>
void FromPaxos(const Value& from, Wire& to) {
  to.set_base_epoch(from.base_epoch);
  to.set_base_digest(from.base_digest);
  FromBallot(from.ballot, *to.mutable_ballot());
}

control::Hello ToHello(const v1::Hello& from) {
  control::Hello hello = {.bootstrap_expect = static_cast<int>(from.bootstrap_expect()),
                          .layout_epoch = from.layout_epoch(),
                          .layout_digest = from.layout_digest(),
                          .answer_wanted = from.answer_wanted(),
                          .steps = ToSteps(from.steps())};
  for (const v1::NodeInfo& info : from.known()) hello.known.push_back(ToInfo(info));
  hello.beats.reserve(static_cast<size_t>(from.beats_size()));
  for (const v1::Beat& beat : from.beats()) {
    hello.beats.push_back({NodeId{beat.node()}, beat.generation(), beat.heartbeat(), beat.suspect()});
  }
  return hello;
}

absl::StatusOr<control::Body> ToBody(const v1::ControlMessage& from) {
  using M = v1::ControlMessage;
  switch (from.body_case()) {
    case M::kHello:
      return ToHello(from.hello());
    case M::kPromise: {
      control::FormationPromise promise = {.bootstrap_expect =
                                               static_cast<int>(from.promise().bootstrap_expect())};
      for (const v1::NodeInfo& info : from.promise().nodes()) promise.nodes.push_back(ToInfo(info));
      return promise;
    }
    case M::kPrepare:
      if (!HasBallot(from.prepare())) return Refused("it asks for a promise under no ballot");
      return ToPaxos<control::Prepare>(from.prepare());
    case M::kPrepared: {
      auto prepared = ToPaxos<control::Prepared>(from.prepared());
      prepared.promised = from.prepared().promised();
      prepared.highest = ToBallot(from.prepared().highest());
      prepared.accepted_ballot = ToBallot(from.prepared().accepted_ballot());
      if (from.prepared().has_accepted()) {
        absl::StatusOr<Layout> layout = ToLayout(from.prepared().accepted());
        if (!layout.ok()) return layout.status();
        prepared.accepted = *std::move(layout);
      }
      return prepared;
    }
    case M::kAccept: {
      if (!HasBallot(from.accept())) return Refused("it asks for a vote under no ballot");
      absl::StatusOr<Layout> layout = ToLayout(from.accept().layout());
      if (!layout.ok()) return layout.status();
      auto accept = ToPaxos<control::Accept>(from.accept());
      accept.layout = *std::move(layout);
      return accept;
    }
    case M::kAccepted: {
      auto accepted = ToPaxos<control::Accepted>(from.accepted());
      accepted.accepted = from.accepted().accepted();
      accepted.highest = ToBallot(from.accepted().highest());
      return accepted;
    }
    case M::kLayout: {
      absl::StatusOr<Layout> layout = ToLayout(from.layout().layout());
      if (!layout.ok()) return layout.status();
      control::LayoutPush push = {.layout = *std::move(layout), .steps = ToSteps(from.layout().steps())};
      if (from.layout().has_other()) {
        absl::StatusOr<Layout> other = ToLayout(from.layout().other());
        if (!other.ok()) return other.status();
        push.other = *std::move(other);
      }
      return push;
    }
    case M::kLayoutWanted:
      return control::LayoutWanted{};
    case M::BODY_NOT_SET:
      break;
  }
  return Refused("it is of a kind that this version does not know");
}

struct ToWire {
  v1::ControlMessage& to;

  void operator()(const control::Hello& from) const {
    v1::Hello& hello = *to.mutable_hello();
    hello.set_bootstrap_expect(static_cast<uint32_t>(from.bootstrap_expect));
    hello.set_layout_epoch(from.layout_epoch);
    hello.set_layout_digest(from.layout_digest);
    hello.set_answer_wanted(from.answer_wanted);
    FromSteps(from.steps, *hello.mutable_steps());
    for (const NodeInfoValue& info : from.known) FromInfo(info, *hello.add_known());
    for (const control::Beat& beat : from.beats) {
      v1::Beat& out = *hello.add_beats();
      out.set_node(beat.node.value);
      out.set_generation(beat.generation);
      out.set_heartbeat(beat.heartbeat);
      out.set_suspect(beat.suspect);
    }
  }
  void operator()(const control::FormationPromise& from) const {
    to.mutable_promise()->set_bootstrap_expect(static_cast<uint32_t>(from.bootstrap_expect));
    for (const NodeInfoValue& info : from.nodes) FromInfo(info, *to.mutable_promise()->add_nodes());
  }
  void operator()(const control::Prepare& from) const { FromPaxos(from, *to.mutable_prepare()); }
  void operator()(const control::Prepared& from) const {
    v1::Prepared& prepared = *to.mutable_prepared();
    FromPaxos(from, prepared);
    prepared.set_promised(from.promised);
    FromBallot(from.highest, *prepared.mutable_highest());
    FromBallot(from.accepted_ballot, *prepared.mutable_accepted_ballot());
    if (from.accepted) FromLayout(*from.accepted, *prepared.mutable_accepted());
  }
  void operator()(const control::Accept& from) const {
    FromPaxos(from, *to.mutable_accept());
    FromLayout(from.layout, *to.mutable_accept()->mutable_layout());
  }
  void operator()(const control::Accepted& from) const {
    v1::Accepted& accepted = *to.mutable_accepted();
    FromPaxos(from, accepted);
    accepted.set_accepted(from.accepted);
    FromBallot(from.highest, *accepted.mutable_highest());
  }
  void operator()(const control::LayoutPush& from) const {
    v1::LayoutPush& push = *to.mutable_layout();
    FromLayout(from.layout, *push.mutable_layout());
    if (from.other) FromLayout(*from.other, *push.mutable_other());
    FromSteps(from.steps, *push.mutable_steps());
  }
  void operator()(const control::LayoutWanted&) const { to.mutable_layout_wanted(); }
};

}  // namespace

absl::StatusOr<control::Message> ToControl(const v1::ControlMessage& from) {
  if (from.format() != kControlFormat) return Refused("it has a format that this version does not know");
  if (from.from() == 0) return Refused("it names no sender");
  absl::StatusOr<control::Body> body = ToBody(from);
  if (!body.ok()) return body.status();
  return control::Message{from.cluster_id(), NodeId{from.from()}, from.from_address(), *std::move(body)};
}

void FromControl(const control::Message& from, v1::ControlMessage& to) {
  to.set_cluster_id(from.cluster_id);
  to.set_from(from.from.value);
  to.set_from_address(from.from_address);
  to.set_format(kControlFormat);
  std::visit(ToWire{to}, from.body);
}

absl::StatusOr<KeyspaceSpec> ToKeyspace(const v1::Keyspace& from) {
  KeyspaceSpec to = {.id = from.id(),
                     .name = from.name(),
                     .n = static_cast<int>(from.n()),
                     .ttl_ms = from.ttl_ms(),
                     .strict = from.strict()};
  if (from.n() > KeyspaceSpec::kReplicasMax) {
    return absl::InvalidArgumentError("n is " + std::to_string(from.n()) + "; it must be 1 to " +
                                      std::to_string(KeyspaceSpec::kReplicasMax));
  }
  absl::StatusOr<std::optional<ReplicaCount>> r = ToReplicaCount("r", from.has_r(), from.r());
  if (!r.ok()) return r.status();
  absl::StatusOr<std::optional<ReplicaCount>> w = ToReplicaCount("w", from.has_w(), from.w());
  if (!w.ok()) return w.status();
  to.r = r->value_or(ReplicaCount{});
  to.w = w->value_or(ReplicaCount{});
  if (from.conflict() == kLastWriteWins) {
    to.conflict = ConflictRule::kLastWriteWins;
  } else if (!from.conflict().empty() && from.conflict() != kSiblings) {
    return absl::InvalidArgumentError("conflict is \"" + from.conflict() + "\"; it must be " + kSiblings +
                                      " or " + kLastWriteWins);
  }
  return to;
}

void FromKeyspace(const KeyspaceSpec& from, v1::Keyspace& to) {
  to.set_id(from.id);
  to.set_name(from.name);
  to.set_n(static_cast<uint32_t>(from.n));
  FromReplicaCount(from.r, *to.mutable_r());
  FromReplicaCount(from.w, *to.mutable_w());
  to.set_conflict(from.conflict == ConflictRule::kSiblings ? kSiblings : kLastWriteWins);
  to.set_ttl_ms(from.ttl_ms);
  to.set_strict(from.strict);
}

void FromFacts(const NodeFactsValue& from, v1::NodeFacts& to) {
  to.set_keys(from.keys);
  to.set_bytes(from.bytes);
  for (const auto& [keyspace, totals] : from.rows) {
    v1::KeyspaceRows& each = *to.add_rows();
    each.set_keyspace(keyspace);
    each.set_rows(totals.rows);
    each.set_bytes(totals.bytes);
  }
  uint64_t held = 0;
  for (const auto& [node, hints] : from.hints_for) {
    (*to.mutable_hints_for())[node.value] = hints;
    held += hints;
  }
  to.set_hints_held(held);
  to.set_collectible(from.collectible);
  to.set_unequal_ranges(from.unequal_ranges);
  to.set_filling(from.filling);
  to.set_dropping(from.dropping);
  to.set_layout_epoch(from.layout_epoch);
  to.set_version(from.version);
}

}  // namespace gyre
