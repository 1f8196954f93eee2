// Movement: this node fetches what the newest layout gives it, and says when it has all.
//
// It begins when enough members have acked the layout (layouts.h): from then on every write needs a quorum
// among the replicas by the new layout, too. So what a new replica must still get is what the replica whose
// place it takes has confirmed before, and one pass over that replica's rows finds it: no count of
// confirmations by the new layout rests on the new replica alone for anything older. Where that replica is
// dead, fills, or has not acked, or where the number of replicas changes, nobody's place is taken: then it
// compares with every other replica of before (an errand of Exchange), after it fetched what it can from one
// of them.
//
// Pages are asked for by operations of this life alone, so that what was sent for an earlier one is ignored;
// rows are merged as any peer's are; the place up to which they are durable is, too, and a later life goes on
// from there.
//
// A value driven by its node. Two pages are under way at a time, at a limited rate: that is the budget. No
// node gives faster than that, either (giving_pace.h).
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/core/dropper.h"
#include "server/core/exchange.h"
#include "server/core/message.h"
#include "server/core/movement_task.h"
#include "server/core/replica.h"
#include "server/core/turn.h"

namespace gyre {

class Movement {
 public:
  // Unless an operator says otherwise. Small rows cost by their number: each counts as so many bytes at
  // least.
  static constexpr uint64_t kBytesPerSecond = 16 << 20;
  static constexpr uint32_t kRowBytesMin = 1024;

  // `state`: what the last life left on disk.
  Movement(Replica& replica, Exchange& exchange, Dropper& dropper, MoveState state);

  void LayoutsChanged(const Turn& turn);
  void Tick(const Turn& turn);
  std::optional<Micros> next_deadline() const;
  void PageReply(const Turn& turn, NodeId from, OpId op, peer::FetchPageReply reply);
  void RowStored(const Turn& turn, OpId op, absl::StatusCode code);  // one of a page that was fetched
  void ErrandEnded(const Turn& turn, OpId id, bool ok);
  void PeerLost(const Turn& turn, NodeId node);
  // A batch with this state ended.
  void Committed(const Turn& turn, bool ok);
  void Control(const Turn& turn, const ControlMoves& control);

  // What is to be cleared of old is gone, and that is durable: the layout may be acked.
  bool ready() const { return ready_; }
  // All is here that the layouts give this node, durably.
  bool synced() const { return synced_; }

  const std::vector<MoveTask>& tasks() const { return tasks_; }
  const MoveControl& control() const { return state_.control; }
  uint64_t bytes_per_second() const;
  // How long a page of these counts for at that rate.
  Micros TimeOf(const std::vector<Row>& rows) const;
  bool running(const MoveTask& task) const { return &task == current(); }
  // Since the start; rising.
  uint64_t keys_received() const { return keys_received_; }
  uint64_t bytes_received() const { return bytes_received_; }

 private:
  static constexpr uint32_t kPageBytes = 128 << 10;
  static constexpr size_t kPagesMax = 2;
  static constexpr Micros kPatience = Seconds(5);         // for a page
  static constexpr Micros kSourcePatience = Seconds(30);  // for a replica that is away: it may come back
  static constexpr Micros kRetryAfter = Millis(500);
  static constexpr Micros kDiskPause = Millis(20);

  // Rows that were fetched and are becoming durable.
  struct Page {
    OpId op = 0;
    std::string covered_to;  // row key, inclusive; empty: to the end of the span
    size_t unconfirmed = 0;
    uint64_t keys = 0;
    uint64_t bytes = 0;
  };

  MoveTask* current();
  const MoveTask* current() const;
  void Fetch(const Turn& turn, MoveTask& task);
  void Compare(const Turn& turn, MoveTask& task);
  bool ChooseSource(const Turn& turn, MoveTask& task);
  bool IsGiver(const Turn& turn, const MoveTask& task) const;
  std::vector<NodeId> ToCompare(const Turn& turn, const MoveTask& task) const;
  void StartOver(const Turn& turn, Micros pause);
  void EndPages(const Turn& turn, MoveTask& task);
  void EndTask(const Turn& turn, MoveTask& task);
  void Persist(const Turn& turn);
  void Gain();
  void Settle(const Turn& turn);

  Replica& replica_;
  Exchange& exchange_;
  Dropper& dropper_;
  MoveState state_;
  std::vector<MoveTask> tasks_;
  bool ready_ = false;
  bool ready_on_its_way_ = false;
  bool synced_ = false;
  bool synced_on_its_way_ = false;
  bool can_fetch_ = false;  // enough members have acked

  OpId asked_op_ = 0;  // of the page that was asked for; 0: none
  Micros asked_until_;
  std::string asked_after_;  // row key behind which the next page begins
  bool asked_all_ = false;   // the last page of the task is here
  std::deque<Page> pages_;
  std::map<OpId, NodeId> errands_;
  std::optional<Micros> source_lost_at_;
  NodeId bad_giver_;  // of the current task: it fills, or lacks what it cannot read
  Micros next_at_;
  uint64_t keys_received_ = 0;
  uint64_t bytes_received_ = 0;
};

}  // namespace gyre
