// A Quorum counts the answers of one replica set and says when the outcome is settled. It is a value: no
// clock, no I/O, no locks, no allocation.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>

namespace gyre {

enum class Verdict : uint8_t { kPending, kMet, kLost };

class Quorum {
 public:
  static constexpr int kReplicasMax = 8;              // by one layout
  static constexpr int kSlotsMax = 2 * kReplicasMax;  // by two, while data moves
  using Slots = uint16_t;                             // a bit per slot

  // So many of these must say yes.
  struct Group {
    Slots slots = 0;
    uint8_t need = 0;
  };

  constexpr Quorum() = default;
  // REQUIRES: 1 <= need <= replicas <= kReplicasMax.
  constexpr Quorum(int replicas, int need)
      : Quorum(replicas, {static_cast<Slots>((1u << replicas) - 1), static_cast<uint8_t>(need)}, {}) {
    assert(replicas <= kReplicasMax);
  }
  // Each of two groups must reach its own quorum; the second may be empty.
  constexpr Quorum(int slots, Group first, Group second)
      : slots_(static_cast<uint8_t>(slots)), groups_{first, second} {
    assert(slots <= kSlotsMax);
    assert(1 <= first.need);
    for (const Group& group : groups_) assert(group.need <= std::popcount(group.slots));
  }

  // Records the answer of the replica in `slot` and returns the verdict. A replica is counted once: later
  // answers from a slot are ignored, so duplicated or reordered messages change nothing.
  constexpr Verdict Yes(int slot) { return Record(slot, yes_); }
  constexpr Verdict No(int slot) { return Record(slot, no_); }

  // Once settled, a verdict never changes.
  constexpr Verdict verdict() const {
    bool met = true;
    for (const Group& group : groups_) {
      if (std::popcount(static_cast<Slots>(yes_ & group.slots)) >= group.need) continue;
      met = false;
      const int left = std::popcount(static_cast<Slots>(group.slots & ~no_));
      if (left < group.need) return Verdict::kLost;  // `need` can no longer be reached
    }
    return met ? Verdict::kMet : Verdict::kPending;
  }
  // Of the group that has furthest to go.
  constexpr int acks() const { return std::popcount(static_cast<Slots>(yes_ & furthest().slots)); }
  constexpr int need() const { return furthest().need; }
  constexpr int replicas() const { return slots_; }
  constexpr bool Answered(int slot) const { return ((yes_ | no_) >> slot & 1) != 0; }
  constexpr bool SaidYes(int slot) const { return (yes_ >> slot & 1) != 0; }
  constexpr bool all_answered() const { return std::popcount(static_cast<Slots>(yes_ | no_)) == slots_; }

 private:
  constexpr Verdict Record(int slot, Slots& side) {
    assert(0 <= slot);
    assert(slot < slots_);
    if (!Answered(slot)) side = static_cast<Slots>(side | 1u << slot);
    return verdict();
  }
  constexpr const Group& furthest() const {
    const auto lacks = [&](const Group& g) {
      return g.need - std::popcount(static_cast<Slots>(yes_ & g.slots));
    };
    return groups_[1].need > 0 && lacks(groups_[1]) > lacks(groups_[0]) ? groups_[1] : groups_[0];
  }

  uint8_t slots_ = 0;
  Slots yes_ = 0;
  Slots no_ = 0;
  std::array<Group, 2> groups_ = {};
};

}  // namespace gyre
