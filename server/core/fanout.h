// A Fanout asks the replicas of one set until enough have answered, and no more of them than it must.
//
// A value of a coordinator's operation. It decides whom to ask; the caller says with what message, through
// `ask`.
#pragma once

#include <cstdint>

#include "server/core/quorum.h"
#include "server/core/replica_set.h"
#include "server/core/turn.h"

namespace gyre {

class Fanout {
 public:
  Fanout() = default;
  // REQUIRES: 1 <= need <= replicas.size().
  Fanout(const ReplicaSet& replicas, int need) : replicas_(replicas), quorum_(replicas.size(), need) {}

  // Asks as many replicas as must answer, this node first. Replicas without a link count as refusals at once.
  void Start(const Turn& turn, auto ask) {
    for (int slot = 0; slot < replicas_.size(); ++slot) {
      if (!turn.Up(replicas_[slot])) quorum_.No(slot);
    }
    if (quorum_.verdict() == Verdict::kLost) return;
    for (int i = 0; i < quorum_.need(); ++i) AskNext(turn, ask);
  }

  // Asks one replica more (a hedge, or in place of one that failed), if there is one that was not asked: this
  // node first, fallbacks last.
  void AskNext(const Turn& turn, auto ask) {
    const auto rank = [&](int slot) {
      return replicas_.hint_for(slot) ? 2 : replicas_[slot] == turn.self ? 0 : 1;
    };
    int next = -1;
    for (int slot = 0; slot < replicas_.size(); ++slot) {
      if (Asked(slot) || quorum_.Answered(slot)) continue;
      if (next < 0 || rank(slot) < rank(next)) next = slot;
    }
    if (next < 0) return;
    asked_ = static_cast<Quorum::Slots>(asked_ | 1u << next);
    ask(replicas_[next]);
  }

  // The slot of an answer that counts, or -1: from a node that was asked and has not answered yet.
  int Awaited(NodeId from) const {
    const int slot = replicas_.SlotOf(from);
    return slot >= 0 && Asked(slot) && !quorum_.Answered(slot) ? slot : -1;
  }

  Verdict Yes(int slot) { return quorum_.Yes(slot); }

  // The replica in `slot` was asked and failed; the next one makes up for it.
  Verdict Failed(const Turn& turn, int slot, auto ask) {
    quorum_.No(slot);
    AskNext(turn, ask);
    return verdict();
  }

  // The link to a node broke.
  Verdict Lost(const Turn& turn, NodeId node, auto ask) {
    const int slot = replicas_.SlotOf(node);
    if (slot < 0 || quorum_.Answered(slot)) return verdict();
    if (Asked(slot)) return Failed(turn, slot, ask);
    return quorum_.No(slot);
  }

  // A replica that was asked has not answered.
  bool waiting() const {
    for (int slot = 0; slot < replicas_.size(); ++slot) {
      if (Asked(slot) && !quorum_.Answered(slot)) return true;
    }
    return false;
  }

  Verdict verdict() const { return quorum_.verdict(); }
  const Quorum& quorum() const { return quorum_; }
  const ReplicaSet& replicas() const { return replicas_; }

 private:
  bool Asked(int slot) const { return (asked_ >> slot & 1) != 0; }

  ReplicaSet replicas_;
  Quorum quorum_;
  Quorum::Slots asked_ = 0;
};

}  // namespace gyre
