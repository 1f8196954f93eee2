// Rows that no layout gives this node leave its disk.
//
// Two occasions. When a layout retired, what this node holds beyond its share is first offered to all
// replicas of it (an errand of Exchange, in which only what they lack travels), and erased when each of them
// has confirmed that: so nothing is dropped that only this node has. And before a layout gives this node a
// range, what it still has there of an earlier time is erased without that: it may be older than what the
// stable cut let go, and would come back.
//
// A value driven by its node. One page is under way at a time: that is the budget.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/core/exchange.h"
#include "server/core/key_span.h"
#include "server/core/message.h"
#include "server/core/replica.h"
#include "server/core/replica_ranges_cache.h"
#include "server/core/turn.h"

namespace gyre {

class Dropper {
 public:
  Dropper(Replica& replica, Exchange& exchange, OpId first_op)
      : replica_(replica), exchange_(exchange), next_op_(OfKind(OpKind::kMovement, first_op)) {}

  // What this node holds may be more than its share. While data moves nothing is dropped.
  void LayoutsChanged(const Turn& turn);
  // Erases what lies in these spans. Until the next LayoutsChanged.
  void Clear(const Turn& turn, std::vector<KeySpan> spans);
  bool cleared() const { return clear_.empty(); }
  // Nothing is left that is not this node's.
  bool done() const { return done_; }
  uint64_t rows_dropped() const { return rows_dropped_; }

  void Tick(const Turn& turn);
  std::optional<Micros> next_deadline() const;
  void PageRead(const Turn& turn, OpId op, const peer::FetchPageReply& page);
  void Resume(const Turn& turn, OpId op);  // a row is in hand
  void RowUnreadable(OpId op);
  void Confirmed(const Turn& turn, OpId op, absl::StatusCode code);  // a row is gone, or is not
  void ErrandEnded(const Turn& turn, OpId id, bool ok);
  // Movement and this name what they ask for out of one sequence.
  OpId NewOp() { return next_op_++; }
  // Whether that errand, or that operation, is one of this.
  bool Owns(OpId op) const { return rows_.contains(op) || errands_.contains(op); }

 private:
  static constexpr uint32_t kPageRows = 256;
  static constexpr Micros kPagesApart = Millis(5);
  static constexpr Micros kRetryAfter = Seconds(1);
  // From the retirement of a layout on: by then every coordinator knows of it.
  static constexpr Micros kGrace = Seconds(3);

  void ReadPage(const Turn& turn, const std::string& begin, const std::string& end, uint32_t rows);
  void Walk(const Turn& turn, const peer::FetchPageReply& page);
  void Offer(const Turn& turn);
  void Erase(const Turn& turn, const peer::FetchPageReply& page);
  void SpanErased(const Turn& turn);
  void Later(const Turn& turn, Micros pause) { next_at_ = turn.now.steady + pause; }

  Replica& replica_;
  Exchange& exchange_;
  OpId next_op_;
  ReplicaRangesCache ranges_;
  bool done_ = true;
  std::vector<KeySpan> clear_;       // to be erased, the last one now
  std::vector<uint32_t> keyspaces_;  // still to be walked, the last one now
  std::string walked_to_;            // row key, in that
  // The range that was found to be too much, and what has become of it.
  struct Leftover {
    uint32_t keyspace = 0;
    TokenRange range;
    KeySpan span;
    std::set<NodeId> to_ask;  // who has not confirmed yet that it lacks nothing of it
    bool erasing = false;
  };
  std::optional<Leftover> leftover_;
  OpId page_op_ = 0;                  // of the page that is being read; 0: none
  std::map<OpId, std::string> rows_;  // that are being erased: row keys
  bool failed_ = false;               // one of them could not be
  std::map<OpId, NodeId> errands_;
  Micros next_at_;
  uint64_t rows_dropped_ = 0;
};

}  // namespace gyre
