// The replicas of one key, most preferred first, and who stands in for those that are away. While data moves
// also those by the other layout. A value without allocation.
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
    set.first_ = static_cast<Quorum::Slots>((1u << set.size_) - 1);
    return set;
  }

  // Adds those by another layout; the two groups may share slots.
  void Join(const ReplicaSet& other) {
    for (const NodeId node : other.ids()) {
      int slot = SlotOf(node);
      if (slot < 0) {
        slot = size_++;
        ids_[static_cast<size_t>(slot)] = node;
      }
      second_ = static_cast<Quorum::Slots>(second_ | 1u << slot);
    }
  }
  // The slots by the layout that it was made of, and by the one that joined: none, or all of that.
  Quorum::Slots first() const { return first_; }
  Quorum::Slots second() const { return second_; }
  bool InFirst(int slot) const { return (first_ >> slot & 1) != 0; }

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
  std::array<NodeId, Quorum::kSlotsMax> ids_ = {};
  std::array<NodeId, Quorum::kSlotsMax> hint_for_ = {};
  Quorum::Slots first_ = 0;
  Quorum::Slots second_ = 0;
  int size_ = 0;
};

}  // namespace gyre
