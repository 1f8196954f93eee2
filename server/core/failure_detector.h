// The failure detector: which members were heard of lately, by the age of their heartbeats.
//
// Every member counts its heartbeat up at each round, and gossip spreads the newest beat of each (van
// Renesse, Minsky, Hayden, "A Gossip-Style Failure Detection Service"). A member of which nothing newer came
// for kSuspectAfter is suspected. A suspicion spreads as beats do (Das, Gupta, Motivala, "SWIM"): it names
// the beat that it is about, wins over that one, and is refuted by any later one, which a member that lives
// sends at its next round. So a node that hears badly convinces nobody: what it accuses has long gone on. And
// a node that was paused itself judges nobody by the time in which it could not listen (Dadgar, Phillips,
// Currey, "Lifeguard").
//
// It steers routing, and nothing else: nobody is removed and nothing is forgotten because of it. A value:
// told the time, owns no clock, and the same inputs give the same verdicts. NOT thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "server/core/membership_messages.h"
#include "server/core/time.h"

namespace gyre {

class FailureDetector {
 public:
  static constexpr Micros kRound = Millis(200);
  static constexpr int kFanout = 3;  // members that a round is told to
  static constexpr Micros kSuspectAfter = Millis(3000);
  static constexpr Micros kPausedAfter = Seconds(1);  // rounds further apart than this: this node was paused

  // `random_seed`: who is told when.
  FailureDetector(NodeId self, uint64_t random_seed) : self_(self), random_state_(random_seed ^ self.value) {}

  // Whom to watch: `members`, of which this node may be one. Those that are new have just been heard of.
  // REQUIRES: sorted by id.
  void Watch(Micros now, std::span<const Member> members);

  // What gossip says of a node. News are taken, anything else changes nothing.
  void Heard(Micros now, const control::Beat& beat);

  // One round; to be called every kRound.
  struct Round {
    std::vector<NodeId> tell;      // kFanout at random of those that are trusted, and one of the suspects
    std::optional<Micros> paused;  // for how long this node was. Then nobody is judged, and everybody who was
                                   // trusted counts as just heard of.
  };
  Round NextRound(Micros now);

  // False also for who is not watched.
  bool Suspects(NodeId node) const;
  // Sorted by id.
  std::vector<NodeId> suspects() const;
  // The newest beat of each watched member, to be gossiped.
  std::vector<control::Beat> beats() const;

 private:
  struct Watched {
    control::Beat beat;  // the newest
    Micros heard_at;     // when it came
  };

  const Watched* Find(NodeId node) const;
  size_t Random(size_t below);

  NodeId self_;
  uint64_t random_state_;
  std::vector<Watched> watched_;  // sorted by id; without this node
  std::optional<Micros> round_at_;
};

}  // namespace gyre
