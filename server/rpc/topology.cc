// The cluster as this node sees it.
#include "server/rpc/topology.h"

#include <cstdio>
#include <memory>
#include <string>

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

}  // namespace

void FillNode(const Backend& backend, NodeId id, const NodeInfoValue* info, v1::Node& node) {
  node.set_id(ToString(id));
  const Liveness liveness = backend.liveness(id);
  node.set_state(StateOf(liveness.state));
  node.set_state_ms(static_cast<uint64_t>(liveness.lasting.value / 1000));
  if (info == nullptr) return;
  node.set_address(info->address);
  node.set_peer_address(info->peer_address);
  node.set_zone(info->zone);
  node.set_weight(info->weight);
}

void FillTopology(const Backend& backend, v1::Topology& topology) {
  const std::shared_ptr<const View> view = backend.state.view();
  const std::shared_ptr<const ClusterState::Known> known = backend.state.known();
  topology.set_answered_by(ToString(backend.self));
  if (view != nullptr) {
    topology.set_cluster_id(view->layout.cluster_id);
    topology.set_layout_epoch(view->layout.epoch);
    topology.set_layout_digest(ToString(Token{view->digest}));
    topology.set_active_layouts(1);
    for (const Member& member : view->layout.members) {
      const NodeInfoValue* info = Find(*known, member.id);
      v1::Node& node = *topology.add_nodes();
      FillNode(backend, member.id, info, node);
      node.set_zone(member.zone);
      node.set_weight(member.weight);
      node.set_member(true);
      for (const Token token : member.tokens) node.add_tokens(token.value);
      if (info != nullptr) FromFacts(info->facts, *node.mutable_facts());
    }
    for (const KeyspaceSpec& keyspace : view->layout.keyspaces)
      FromKeyspace(keyspace, *topology.add_keyspaces());
  }
  for (const auto& [id, info] : *known) {
    if (view != nullptr && view->ring.IndexOf(id) >= 0) continue;
    v1::Node& node = *topology.add_nodes();
    FillNode(backend, id, &info, node);
    FromFacts(info.facts, *node.mutable_facts());
  }
}

}  // namespace gyre
