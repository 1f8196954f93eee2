// Dots and version vectors: the names of writes, and sets of them.
// Source: Preguica et al., "Dotted Version Vectors", 2012; the gap-free vector is our restriction.
#pragma once

#include <absl/container/inlined_vector.h>
#include <compare>
#include <cstdint>
#include <string>

namespace gyre {

// Who mints dots: one life of one node. The incarnation rises whenever the node may lack something it minted.
struct Actor {
  uint64_t node = 0;
  uint32_t incarnation = 0;
  auto operator<=>(const Actor&) const = default;
};

// The name of one write. The counter is a hybrid logical clock: 48 bits of milliseconds since 1970, 16 of
// sequence.
struct Dot {
  Actor actor;
  uint64_t counter = 0;
  // By counter first, so that the order of dots is the order of their clocks; ties by actor.
  friend std::strong_ordering operator<=>(const Dot& a, const Dot& b) {
    if (auto order = a.counter <=> b.counter; order != 0) return order;
    return a.actor <=> b.actor;
  }
  bool operator==(const Dot&) const = default;
};

constexpr int kCounterSequenceBits = 16;
// Larger counters are refused wherever bytes are read, so that one above any known counter always exists.
constexpr uint64_t kCounterMax = (uint64_t{1} << 63) - 1;
constexpr uint64_t CounterOfMillis(uint64_t millis) { return millis << kCounterSequenceBits; }
constexpr uint64_t MillisOfCounter(uint64_t counter) { return counter >> kCounterSequenceBits; }

// Per actor the highest counter known. An entry claims every dot of that actor up to and including it.
class VersionVector {
 public:
  struct Entry {
    Actor actor;
    uint64_t counter = 0;
    bool operator==(const Entry&) const = default;
  };
  using Entries = absl::InlinedVector<Entry, 4>;

  bool Covers(const Dot& dot) const { return dot.counter <= CounterOf(dot.actor); }
  bool Covers(const VersionVector& other) const;
  // 0 when the actor is unknown. Counters start at 1.
  uint64_t CounterOf(const Actor& actor) const;
  // The highest counter of all actors; 0 when empty.
  uint64_t Max() const;
  // The entry with the highest counter, ties by actor, as a dot; counter 0 when empty.
  Dot Highest() const;
  bool empty() const { return entries_.empty(); }

  void Add(const Dot& dot);               // raises the entry of dot.actor to dot.counter if it is lower
  void Join(const VersionVector& other);  // entry by entry the maximum
  const Entries& entries() const { return entries_; }  // sorted by actor

  bool operator==(const VersionVector&) const = default;

 private:
  Entries entries_;
};

std::string ToString(const Dot& dot);               // "00000000000009fe.3@1234" (node, incarnation, counter)
std::string ToString(const VersionVector& vector);  // "{dot, dot}", each entry as its highest dot

}  // namespace gyre
