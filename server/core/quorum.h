// A Quorum counts the answers of one replica set and says when the outcome is settled. It is a value: no
// clock, no I/O, no locks, no allocation.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>

namespace gyre {

enum class Verdict : uint8_t { kPending, kMet, kLost };

class Quorum {
 public:
  static constexpr int kReplicasMax = 8;
  constexpr Quorum() = default;
  // REQUIRES: 1 <= need <= replicas <= kReplicasMax.
  constexpr Quorum(int replicas, int need)
      : replicas_(static_cast<uint8_t>(replicas)), need_(static_cast<uint8_t>(need)) {
    assert(1 <= need);
    assert(need <= replicas);
    assert(replicas <= kReplicasMax);
  }

  // Records the answer of the replica in `slot` and returns the verdict. A replica is counted once: later
  // answers from a slot are ignored, so duplicated or reordered messages change nothing.
  constexpr Verdict Yes(int slot) { return Record(slot, yes_); }
  constexpr Verdict No(int slot) { return Record(slot, no_); }

  // Once settled, a verdict never changes.
  constexpr Verdict verdict() const {
    if (acks() >= need_) return Verdict::kMet;
    if (std::popcount(no_) > replicas_ - need_) return Verdict::kLost;  // `need` can no longer be reached
    return Verdict::kPending;
  }
  constexpr int acks() const { return std::popcount(yes_); }
  constexpr int need() const { return need_; }
  constexpr int replicas() const { return replicas_; }
  constexpr bool Answered(int slot) const { return ((yes_ | no_) >> slot & 1) != 0; }
  constexpr bool SaidYes(int slot) const { return (yes_ >> slot & 1) != 0; }
  constexpr bool all_answered() const { return std::popcount(static_cast<uint8_t>(yes_ | no_)) == replicas_; }

 private:
  constexpr Verdict Record(int slot, uint8_t& side) {
    assert(0 <= slot);
    assert(slot < replicas_);
    if (!Answered(slot)) side = static_cast<uint8_t>(side | 1u << slot);
    return verdict();
  }

  uint8_t replicas_ = 0;
  uint8_t need_ = 0;
  uint8_t yes_ = 0;
  uint8_t no_ = 0;
};

}  // namespace gyre
