// The clock that mints dots: a hybrid logical clock under a lease, and the life of its actor.
//
// It is told the time; it owns no clock. Counters rise strictly for ever: a lease (an upper bound) is made
// durable before any counter below it is used, and a start begins above the last lease. An actor whose node
// may lack something it minted is retired: the next mint uses a new incarnation, durable before use.
// Source: Kulkarni et al., "Logical Physical Clocks", 2014.
#pragma once

#include <cstdint>
#include <optional>

#include "storage/causal/dot.h"

namespace gyre {

// What must be durable. Written through storage/format/meta_codec.h.
struct ActorState {
  uint32_t incarnation = 0;
  uint64_t leased_counter = 0;  // exclusive: every counter ever used is below it
  bool clean = false;           // true only between a clean drain and the next start
  bool operator==(const ActorState&) const = default;
};

class ActorClock {
 public:
  static constexpr uint64_t kLeaseMillis = 1000;

  // `persisted` is what the last life left (nullopt: a first start). A start without a clean drain retires
  // the actor. Nothing may be minted before Persisted(StateToPersist(...)) was called once.
  ActorClock(uint64_t node, std::optional<ActorState> persisted, uint64_t wall_ms);

  // Mints a dot above `floor` (the highest counter in the record and context it is added to), above all that
  // this actor minted before, and at or above the wall clock. nullopt: the lease or the new incarnation is
  // not durable yet; persist StateToPersist() and try again.
  // *forced is set when the counter had to be more than drift_ms ahead of the clock (of wall_ms, or of where
  // this life started, if that is later). Such a mint needs no lease and ends its actor: Retire() has been
  // called. The next incarnation goes on from the clock, so that one far counter does not spread to other
  // keys.
  // After a crash counters begin up to kLeaseMillis ahead of the wall clock: with a smaller drift_ms
  // elsewhere, mints on top of them are forced there until the wall clock has caught up.
  // REQUIRES: floor < kCounterMax.
  std::optional<Dot> Mint(uint64_t wall_ms, uint64_t floor, uint64_t drift_ms, bool* forced);

  // True when StateToPersist() should be made durable: a lease under half of which is left, or a retirement.
  bool NeedsPersist(uint64_t wall_ms) const;
  // What to make durable now; `floor` and `drift_ms`: those of the mint that waits for it, if one does. Does
  // not change the clock; call Persisted with the same value afterwards. Several may be on their way to disk,
  // if Persisted is called in their order.
  ActorState StateToPersist(uint64_t wall_ms, uint64_t floor = 0, uint64_t drift_ms = 0) const;
  void Persisted(const ActorState& state);

  // The node may lack something this actor minted: the next mint uses a new incarnation, once that is
  // durable.
  void Retire() { retire_pending_ = true; }
  bool retire_pending() const { return retire_pending_; }

  // To be made durable after a clean drain: nothing is minted any more, and the next start may go on with
  // this actor (or, if it was to be retired, with its successor).
  ActorState CleanState() const;

  Actor actor() const { return {node_, durable_.incarnation}; }
  uint64_t last_counter() const { return last_; }

 private:
  // The highest counter that still is a time.
  uint64_t AllowedCounter(uint64_t wall_ms, uint64_t drift_ms) const;

  uint64_t node_;
  ActorState durable_;  // incarnation and lease that may be used
  bool usable_ = false;
  bool retire_pending_ = false;
  uint64_t start_;     // the counter at which this life began
  uint64_t last_ = 0;  // the highest counter that followed the clock
};

}  // namespace gyre
