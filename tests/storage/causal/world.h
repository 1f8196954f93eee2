// A small random world of replicas that write and merge one key, beside a naive model of what they should
// hold.
//
// The model knows no vectors: a replica is a set of writes, and every write carries the set of writes its
// writer had seen.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "storage/causal/record.h"

namespace gyre::testing {

inline Dot DotOf(uint64_t node, uint64_t counter, uint32_t incarnation = 0) {
  return {{node, incarnation}, counter};
}

inline VersionVector VectorOf(const std::vector<Dot>& dots) {
  VersionVector vector;
  for (const Dot& dot : dots) vector.Add(dot);
  return vector;
}

inline Version ValueOf(Dot dot, uint64_t id = 0, bool retried = false) {
  return {.dot = dot,
          .write_id = {.high = 0, .low = id},
          .retried = retried,
          .expires_ms = 0,
          .value = "value of " + ToString(dot)};
}

struct Event {
  bool put = false;
  uint64_t id = 0;
  bool retried = false;
  std::set<Dot> past;
};
using Events = std::map<Dot, Event>;

struct Replica {
  Record record;
  std::set<Dot> known;  // every write that the record claims
  std::set<Dot> met;    // those whose value this record, or one merged into it, has held
};

struct Reader {
  CausalContext context;
  std::set<Dot> seen;
};

// The ids that must stay dead: a retried write of the id was held, and a known write had seen it.
inline std::set<uint64_t> DeadIds(const Events& events, const Replica& replica) {
  std::set<uint64_t> dead;
  for (const Dot& held : replica.met) {
    const Event& event = events.at(held);
    if (!event.retried) continue;
    for (const Dot& later : replica.known) {
      if (events.at(later).past.contains(held)) dead.insert(event.id);
    }
  }
  return dead;
}

// The dots of the values that a replica must hold.
inline std::set<Dot> Expected(const Events& events, const Replica& replica, ConflictRule rule) {
  std::set<Dot> expected;
  if (rule == ConflictRule::kLastWriteWins) {
    if (!replica.known.empty() && events.at(*replica.known.rbegin()).put)
      expected.insert(*replica.known.rbegin());
    return expected;
  }
  const std::set<uint64_t> dead = DeadIds(events, replica);
  for (const Dot& dot : replica.known) {
    const Event& event = events.at(dot);
    const bool overwritten = std::any_of(replica.known.begin(), replica.known.end(), [&](const Dot& later) {
      return events.at(later).past.contains(dot);
    });
    if (event.put && !overwritten && !dead.contains(event.id)) expected.insert(dot);
  }
  return expected;
}

inline Replica MergeReplicas(const Replica& a, const Replica& b, ConflictRule rule) {
  Replica merged = a;
  merged.record = Merge(a.record, b.record, rule);
  merged.known.insert(b.known.begin(), b.known.end());
  merged.met.insert(b.met.begin(), b.met.end());
  return merged;
}

class World {
 public:
  static constexpr size_t kReplicas = 4;

  World(uint32_t seed, ConflictRule rule) : random_(seed), rule_(rule), replicas_(kReplicas) {}

  // Runs `steps` steps. Every state that a replica was ever in stays in history().
  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      Step();
    }
  }
  const Events& events() const { return events_; }
  const std::vector<Replica>& history() const { return history_; }
  size_t Below(size_t bound) { return random_() % bound; }

 private:
  void Step() {
    const size_t node = Below(kReplicas);
    switch (Below(8)) {
      case 0:
      case 1:
        Write(node, /*put=*/true, nullptr);
        break;
      case 2: {
        const Reader nothing;
        Write(node, /*put=*/true, &nothing);
        break;
      }
      case 3:
      case 4:
        if (!readers_.empty()) Write(node, Below(3) != 0, PickReader());
        break;
      case 5: {
        const Replica read = MergeReplicas(replicas_[node], replicas_[Below(kReplicas)], rule_);
        readers_.push_back(
            {.context = {.seen = read.record.seen, .has_own = false, .own = {}}, .seen = read.known});
        break;
      }
      default:
        replicas_[node] = MergeReplicas(replicas_[node], replicas_[Below(kReplicas)], rule_);
        history_.push_back(replicas_[node]);
    }
  }

  const Reader* PickReader() {
    picked_ = readers_[Below(readers_.size())];
    return &picked_;
  }

  void Write(size_t node, bool put, const Reader* reader) {
    Replica& replica = replicas_[node];
    if (reader != nullptr && reader->context.has_own && !replica.record.seen.Covers(reader->context.own))
      return;
    const uint64_t floor = std::max(replica.record.seen.Max(), reader ? reader->context.seen.Max() : 0);
    const Dot dot = DotOf(node + 1, floor + 1 + Below(3));
    Event event{.put = put, .id = 0, .retried = false, .past = reader ? reader->seen : replica.known};
    if (put && Below(2) == 0) {
      const bool again = !ids_.empty() && Below(2) == 0;
      event.id = again ? ids_[Below(ids_.size())] : 1000 - ids_.size();
      event.retried = again && reader != nullptr && Below(2) == 0;
      ids_.push_back(event.id);
    }
    // A late attempt of what is dead already comes before what is there.
    const bool late = put && reader == nullptr && rule_ == ConflictRule::kSiblings &&
                      DeadIds(events_, replica).contains(event.id);
    if (late) event.past.clear();
    events_[dot] = event;
    replica.known.insert(event.past.begin(), event.past.end());
    replica.known.insert(dot);
    const CausalContext* context = reader ? &reader->context : nullptr;
    if (put) {
      if (!DeadIds(events_, replica).contains(event.id)) replica.met.insert(dot);
      ApplyPut(replica.record, ValueOf(dot, event.id, event.retried), context, rule_);
    } else {
      ApplyDelete(replica.record, dot, *context, rule_);
    }
    history_.push_back(replica);
    Reader after{.context = ContextAfterWrite(replica.record, dot, context), .seen = {}};
    if (!after.context.has_own) {
      after.seen = replica.known;
    } else {
      if (reader) after.seen = reader->seen;
      after.seen.insert(dot);
    }
    readers_.push_back(after);
  }

  std::mt19937 random_;
  ConflictRule rule_;
  Events events_;
  std::vector<Replica> replicas_;
  std::vector<Replica> history_ = {Replica{}};
  std::vector<Reader> readers_;
  Reader picked_;
  std::vector<uint64_t> ids_;
};

}  // namespace gyre::testing
