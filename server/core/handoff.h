// Hinted handoff: what this node holds for others is delivered when they are up.
//
// A hint is a row of its own (storage/format/row_key.h), named by the node that it is for and the row. It
// holds a record, on a fallback; or the empty record, on a replica: its own row is what is owed. So hints are
// bounded by keys, and a read, a merge or a restart treats them as rows. Each is sent merged with this node's
// row, and erased when the target confirmed just that: if either changed meanwhile it stays for the next
// pass. Where a layout took the row from the target, a hint with a record is for one of the replicas that the
// row has now, and an empty one for nobody. Source: DeCandia et al., "Dynamo", section 4.6.
//
// A value driven by its node. A page of one target's hints is under way at a time, and pages follow one
// another at a limited rate: that is the budget.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/core/message.h"
#include "server/core/replica.h"
#include "server/core/turn.h"

namespace gyre {

class Handoff {
 public:
  Handoff(Replica& replica, OpId first_op)
      : replica_(replica), next_op_(OfKind(OpKind::kHandoff, first_op)) {}

  void Tick(const Turn& turn);
  std::optional<Micros> next_deadline() const;
  void PageRead(const Turn& turn, OpId op, const peer::FetchPageReply& page);
  void Resume(const Turn& turn, OpId op);  // a row that a delivery needs is in hand
  void StoreReply(const Turn& turn, NodeId from, OpId op, absl::StatusCode code);
  void RowUnreadable(OpId op) { End(op); }
  void Await(const Turn& turn, const AwaitHints& asked);
  void PeerUp(const Turn& turn, NodeId node);
  void PeerLost(NodeId node);

  // What was on disk at the start is known by now.
  bool counted() const { return counted_; }
  // And all of it could be read.
  bool knows_all() const { return counted_ && !damaged_; }

 private:
  static constexpr uint32_t kPageRows = 128;
  static constexpr Micros kPagesApart = Millis(20);
  static constexpr Micros kPassesApart = Millis(500);
  static constexpr Micros kDamagedPassesApart = Seconds(10);  // where nothing but damage was found
  static constexpr Micros kPatience = Seconds(5);

  // A target's pass over what is held for it.
  struct Pass {
    std::string after;  // hint key up to which it was read; empty: from the start
    size_t under_way = 0;
    bool found = false;  // a hint, in this pass
    bool up = false;     // the target
    Micros next;         // when the next page may be read
  };
  struct Delivery {
    NodeId target;
    NodeId to;  // who has to confirm: the target, or this node where it takes the hint for another
    std::string row_key;
    RecordBytes own;   // as sent
    RecordBytes hint;  // as sent
    bool sent = false;
    bool confirmed = false;
    Micros patience;
  };

  // Someone waits until so much was delivered to each of these.
  struct Waiting {
    Ticket ticket;
    Micros deadline;
    bool counted = false;  // what is waited for is known
    std::map<NodeId, uint64_t> delivered;
  };
  static constexpr size_t kWaitingMax = 64;

  void AnswerWaiting(const Turn& turn);
  bool IsOver(const Turn& turn, const Waiting& waiting) const;
  uint64_t Delivered(NodeId node) const;
  void ReadPage(const Turn& turn, NodeId target, const std::string& after);
  void CountPage(const Turn& turn, const peer::FetchPageReply& page);
  void Send(const Turn& turn, OpId op, Delivery& delivery, const RowTable::Entry& own,
            const RowTable::Entry& hint);
  NodeId HeirOf(const Turn& turn, const KeyspaceSpec& keyspace, const Delivery& delivery) const;
  void Erase(const Turn& turn, const Delivery& delivery, RowTable::Entry& hint);
  void End(OpId op);
  bool IsDue(NodeId node, const Pass& pass) const;

  Replica& replica_;
  OpId next_op_;
  bool counted_ = false;
  bool damaged_ = false;    // some could not be counted
  std::string counted_to_;  // hint key
  Micros count_at_;
  OpId page_op_ = 0;  // of the page that is being read; 0: none
  NodeId page_of_;    // zero: of the count
  std::map<NodeId, Pass> passes_;
  std::map<OpId, Delivery> sent_;
  std::vector<Waiting> waiting_;
};

}  // namespace gyre
