// The life of an actor: which counters it may use, and when a new incarnation replaces it.
#include "storage/causal/actor_clock.h"

#include <algorithm>
#include <cassert>

namespace gyre {

ActorClock::ActorClock(uint64_t node, std::optional<ActorState> persisted, uint64_t wall_ms)
    : node_(node), start_(CounterOfMillis(wall_ms)) {
  assert(node != 0);
  if (!persisted) return;
  durable_ = *persisted;
  durable_.clean = false;
  retire_pending_ = !persisted->clean;
  last_ = persisted->leased_counter == 0 ? 0 : persisted->leased_counter - 1;
  start_ = std::max(start_, last_);
}

std::optional<Dot> ActorClock::Mint(uint64_t wall_ms, uint64_t floor, uint64_t drift_ms, bool* forced) {
  assert(floor < kCounterMax);
  *forced = false;
  if (!usable_ || retire_pending_) return std::nullopt;
  const uint64_t counter = std::max({last_ + 1, floor + 1, CounterOfMillis(wall_ms)});
  if (counter > AllowedCounter(wall_ms, drift_ms)) {
    // Neither the clock nor its lease follows a counter that is no time: the actor ends with this mint
    // instead.
    *forced = true;
    Retire();
    return Dot{actor(), counter};
  }
  if (counter >= durable_.leased_counter) return std::nullopt;
  last_ = counter;
  return Dot{actor(), counter};
}

uint64_t ActorClock::AllowedCounter(uint64_t wall_ms, uint64_t drift_ms) const {
  return std::max(CounterOfMillis(wall_ms), start_) + CounterOfMillis(drift_ms);
}

bool ActorClock::NeedsPersist(uint64_t wall_ms) const {
  if (!usable_ || retire_pending_) return true;
  const uint64_t next = std::max(last_ + 1, CounterOfMillis(wall_ms));
  return next + CounterOfMillis(kLeaseMillis / 2) > durable_.leased_counter;
}

ActorState ActorClock::StateToPersist(uint64_t wall_ms, uint64_t floor, uint64_t drift_ms) const {
  const uint64_t lease = CounterOfMillis(kLeaseMillis);
  uint64_t next = std::max(last_ + 1, CounterOfMillis(wall_ms));
  // A floor that is no time is a forced mint's, which needs no lease.
  if (floor >= next && floor < AllowedCounter(wall_ms, drift_ms)) next = floor + 1;
  return {.incarnation = durable_.incarnation + (retire_pending_ ? 1 : 0),
          .leased_counter = std::max(durable_.leased_counter, next + lease),
          .clean = false};
}

void ActorClock::Persisted(const ActorState& state) {
  assert(!state.clean);
  assert(state.incarnation >= durable_.incarnation);
  assert(state.incarnation <= durable_.incarnation + 1);
  assert(state.leased_counter >= durable_.leased_counter);
  // A state taken before the retirement began does not end it.
  if (state.incarnation > durable_.incarnation) retire_pending_ = false;
  durable_ = state;
  usable_ = true;
}

ActorState ActorClock::CleanState() const {
  return {.incarnation = durable_.incarnation + (retire_pending_ ? 1 : 0),
          .leased_counter = last_ + 1,
          .clean = true};
}

}  // namespace gyre
