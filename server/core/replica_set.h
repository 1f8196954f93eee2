// The replicas of one key, most preferred first, and who stands in for those that are away. A value without
// allocation.
#pragma once

#include <array>
#include <cassert>
#include <span>

#include "ring/ring.h"
#include "server/core/layout.h"
#include "server/core/quorum.h"

namespace gyre {

class ReplicaSet {
 public:
  ReplicaSet() = default;

  // The first n of the key's preference list, or all members if there are fewer.
  static ReplicaSet Of(const View& view, const KeyspaceSpec& keyspace, Token token) {
    return OfMembers(view, view.ring.Preferences(token), keyspace.n);
  }
  static ReplicaSet OfMembers(const View& view, std::span<const MemberIndex> members, int n) {
    ReplicaSet set;
    for (const MemberIndex index : members) {
      if (set.size_ == n) break;
      set.ids_[static_cast<size_t>(set.size_++)] = view.ring.members()[index].id;
    }
    return set;
  }

  // `node` takes the place of the primary in `slot`: it is a fallback, which holds a hint for it.
  void StandIn(int slot, NodeId node) {
    hint_for_[static_cast<size_t>(slot)] = (*this)[slot];
    ids_[static_cast<size_t>(slot)] = node;
  }
  // Whom the node in `slot` stands in for; zero: it is a primary.
  NodeId hint_for(int slot) const { return hint_for_[static_cast<size_t>(slot)]; }
  NodeId primary(int slot) const { return hint_for(slot) ? hint_for(slot) : (*this)[slot]; }

  int size() const { return size_; }
  NodeId operator[](int slot) const { return ids_[static_cast<size_t>(slot)]; }
  std::span<const NodeId> ids() const { return {ids_.data(), static_cast<size_t>(size_)}; }
  // The place of `node`, or -1.
  int SlotOf(NodeId node) const {
    for (int slot = 0; slot < size_; ++slot) {
      if ((*this)[slot] == node) return slot;
    }
    return -1;
  }

 private:
  std::array<NodeId, Quorum::kReplicasMax> ids_ = {};
  std::array<NodeId, Quorum::kReplicasMax> hint_for_ = {};
  int size_ = 0;
};

}  // namespace gyre
