// The primary replicas of one key, most preferred first. A value without allocation.
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
  int size_ = 0;
};

}  // namespace gyre
