// The cluster as this node sees it, for clients and operators.
#pragma once

#include "proto/kv.grpc.pb.h"
#include "server/rpc/backend.h"

namespace gyre {

// Members in the order of the ring's, then those that leave while data moves, then announced nodes that are
// no members. Before the cluster has formed: all nodes known, and layout_epoch 0.
void FillTopology(const Backend& backend, v1::Topology& topology);

// What this node thinks of another one: a member by its link, another by when it was last heard of.
Liveness LivenessOf(const Backend& backend, NodeId id);

// One node; without tokens. `info` may be nullptr: nothing was heard of it.
void FillNode(const Backend& backend, NodeId id, const NodeInfoValue* info, v1::Node& node);

}  // namespace gyre
