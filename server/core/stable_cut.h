// The stable cut: a counter at or below which no member can any more bring back what was superseded.
//
// The danger is an old value that somebody can still send: a hint, a repair of a coordinator that was paused,
// a late message. Counters are clocks, so one number cuts history. Each member tells all others four numbers,
// and each number is at most the minimum of the one before it over all members:
//
// - ready: my clock is above it.
// - confirmed: I have durably promised to make nothing at or below it, and to take nothing, but as a replica
// from
//   a replica; the operations that I had begun when I decided that have ended, and no hint is left with me
//   that holds data.
// - exchanged: after all had confirmed it, I compared with every replica above me, and both took what they
//   lacked.
// - cut: I hold it, durably; merges go by it (storage/causal/stable_cut.h).
//
// While a layout moves data the cut rests: nobody confirms, and after it all exchange anew. The members are
// those of both layouts. What all members hold decides what is collected. So one member that is away holds
// everything back, visibly, and nobody has to lead. Records carry the cut under which they were read, so that
// one which was long on its way is recognised (Replica::StoreRow). The rules, and traces that break weaker
// ones, were explored in a model; a node that fills holds no cut, and when it is full takes that of the
// replicas it filled from.
//
// A value driven by its node.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/core/coordinator.h"
#include "server/core/exchange.h"
#include "server/core/handoff.h"
#include "server/core/message.h"
#include "server/core/peer_clocks.h"
#include "server/core/replica.h"
#include "server/core/replica_ranges_cache.h"
#include "server/core/turn.h"

namespace gyre {

class StableCut {
 public:
  // What of a node is looked at before it promises.
  struct Parts {
    Replica& replica;
    const Coordinator& coordinator;
    Exchange& exchange;
    const Handoff& handoff;
  };

  // `marks`: what the last life left on disk. `drift_ms`: how far apart clocks may be.
  StableCut(const CutMarks& marks, uint64_t drift_ms, OpId first_op, Replica& replica);

  void Tick(const Turn& turn, const Parts& parts);
  Micros next_deadline() const { return next_at_; }
  // `fence`: of the sender's layouts. What it exchanged by others does not count: the replicas were others.
  void Receive(const Turn& turn, NodeId from, uint64_t fence, OpId op, const peer::CutState& state,
               Replica& replica);
  // It is told at once what was told last.
  void PeerUp(const Turn& turn, NodeId node);
  // What it said is no news any more: its next life may say less.
  void PeerLost(NodeId node) { members_.erase(node); }
  // A batch with `marks` ended.
  void Committed(const CutMarks& marks, bool ok, Replica& replica);
  // For a node that lost its store. It has forgotten what it promised, and its clock may have gone back
  // since: it learns from a member that has not lost its own, or hears that none is left. No cut that rests
  // on its old promise is above what such a member has confirmed.
  bool KnowsWhatWasPromised(const Turn& turn) const;
  // This node has just become full: it holds the cut of the replicas it filled from. (A new member that has
  // fetched all takes theirs by itself.)
  void Filled(const Turn& turn, Replica& replica);

  // Members that hold the cut back, and what each of them has still to do. Those of the first step that is
  // behind: the later ones wait for it.
  struct Blocker {
    NodeId node;
    std::string why;
    bool operator==(const Blocker&) const = default;
  };
  const std::vector<Blocker>& blockers() const { return blockers_; }
  // Of this node's clock, as PeerClocks has it.
  int64_t clock_offset_ms() const { return clock_offset_ms_; }
  bool clock_is_off() const {
    return clock_offset_ms_ > static_cast<int64_t>(drift_ms_) ||
           clock_offset_ms_ < -static_cast<int64_t>(drift_ms_);
  }

 private:
  static constexpr Micros kEvery = Seconds(1);
  static constexpr Micros kSoon = Millis(50);

  struct Member {
    OpId op = 0;         // of the message that said so: one that was overtaken is no news
    uint64_t fence = 0;  // of the layouts by which it exchanged
    peer::CutState state;
  };
  // The lowest that any member says of `number`; 0 while one has said nothing.
  uint64_t Least(const Turn& turn, uint64_t peer::CutState::*number) const;
  std::vector<Blocker> FindBlockers(const Turn& turn) const;
  void Confirm(const Turn& turn, const Parts& parts);
  void Persist(const Turn& turn);
  void Publish(const Turn& turn);
  void HearCuts(const Turn& turn, Replica& replica);
  uint64_t CutOfFull(const Turn& turn);

  const uint64_t drift_ms_;
  OpId next_op_;
  ReplicaRangesCache ranges_;
  CutMarks marks_;  // durable
  CutMarks sent_;   // to disk: at least that
  bool on_its_way_ = false;
  uint64_t candidate_ = 0;  // to be confirmed, once what was begun before `begun_before_` has ended
  OpId begun_before_ = 0;
  bool was_filling_ = false;
  peer::CutState self_;
  peer::CutState published_;
  Micros publish_at_;
  Micros next_at_;
  std::vector<Blocker> blockers_;
  PeerClocks clocks_;
  int64_t clock_offset_ms_ = 0;
  std::map<NodeId, Member> members_;  // that were heard of, without this node
};

}  // namespace gyre
