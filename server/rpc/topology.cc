// The cluster as this node sees it.
#include "server/rpc/topology.h"

#include <algorithm>
#include <memory>
#include <string>

#include "server/core/membership_moves.h"
#include "server/rpc/convert_control.h"

namespace gyre {
namespace {

const NodeInfoValue* Find(const ClusterState::Known& known, NodeId id) {
  const auto it = known.find(id);
  return it == known.end() ? nullptr : &it->second;
}

v1::Node::State StateOf(Liveness::State state) {
  switch (state) {
    case Liveness::State::kUp:
      return v1::Node::UP;
    case Liveness::State::kSuspect:
      return v1::Node::SUSPECT;
    case Liveness::State::kDown:
      return v1::Node::DOWN;
  }
  return v1::Node::DOWN;
}

// Nodes that are no members are told of in few rounds.
constexpr Micros kUnheardAfter = Seconds(10);

}  // namespace

Liveness LivenessOf(const Backend& backend, NodeId id) {
  const Layouts layouts = backend.state.layouts();
  if (id == backend.self || (layouts.view != nullptr && layouts.HasMember(id))) return backend.liveness(id);
  const std::optional<Micros> heard = backend.state.heard(id);
  if (!heard) return {};
  const Micros age = backend.clock.Read().steady - *heard;
  return {.state = age < kUnheardAfter ? Liveness::State::kUp : Liveness::State::kDown, .lasting = age};
}

void FillNode(const Backend& backend, NodeId id, const NodeInfoValue* info, v1::Node& node) {
  node.set_id(ToString(id));
  const Liveness liveness = LivenessOf(backend, id);
  node.set_state(StateOf(liveness.state));
  node.set_state_ms(static_cast<uint64_t>(liveness.lasting.value / 1000));
  if (info == nullptr) return;
  node.set_address(info->address);
  node.set_peer_address(info->peer_address);
  node.set_zone(info->zone);
  node.set_weight(info->weight);
}

void FillTopology(const Backend& backend, v1::Topology& topology) {
  const Layouts layouts = backend.state.layouts();
  const std::shared_ptr<const View>& view = layouts.view;
  const std::shared_ptr<const ClusterState::Known> known = backend.state.known();
  const std::vector<control::MemberStep> steps = backend.state.steps();
  topology.set_answered_by(ToString(backend.self));
  const auto add = [&](NodeId id) -> v1::Node& {
    const NodeInfoValue* info = Find(*known, id);
    v1::Node& node = *topology.add_nodes();
    FillNode(backend, id, info, node);
    if (info != nullptr) FromFacts(info->facts, *node.mutable_facts());
    return node;
  };
  const auto add_member = [&](const Member& member) -> v1::Node& {
    v1::Node& node = add(member.id);
    node.set_zone(member.zone);
    node.set_weight(member.weight);
    node.set_member(true);
    const auto step = std::ranges::find(steps, member.id, &control::MemberStep::node);
    if (layouts.moving())
      node.set_step(std::string(NameOf(step == steps.end() ? MoveStep::kNone : step->step)));
    return node;
  };
  if (view != nullptr) {
    topology.set_cluster_id(view->layout.cluster_id);
    topology.set_layout_epoch(view->layout.epoch);
    topology.set_layout_digest(ToString(Token{view->digest}));
    topology.set_active_layouts(layouts.moving() ? 2 : 1);
    for (const Member& member : view->layout.members) {
      v1::Node& node = add_member(member);
      for (const Token token : member.tokens) node.add_tokens(token.value);
    }
    if (layouts.moving()) {
      for (const Member& member : layouts.other->layout.members) {
        if (view->ring.IndexOf(member.id) < 0) add_member(member);
      }
    }
    for (const KeyspaceSpec& keyspace : view->layout.keyspaces)
      FromKeyspace(keyspace, *topology.add_keyspaces());
  }
  for (const auto& [id, info] : *known) {
    if (view != nullptr && layouts.HasMember(id)) continue;
    // One that has left is known only while it hands over what is left with it.
    if (view == nullptr || !std::ranges::binary_search(view->layout.removed, id)) add(id);
  }
}

}  // namespace gyre
