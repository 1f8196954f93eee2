// The coordinator's half of the protocol: clients' calls, from the first check to the one reply.
//
// A put or delete is coordinated by a primary replica of its key: it changes its own row and sends the whole
// record to the others. Where no primary can be reached a fallback does the same with its hint. Whoever did
// not confirm is owed a hint. A get or scan is coordinated by any node.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/core/gather.h"
#include "server/core/latency.h"
#include "server/core/message.h"
#include "server/core/replica.h"
#include "server/core/replica_ranges_cache.h"
#include "server/core/scan_merge.h"
#include "server/core/turn.h"

namespace gyre {

// Who is told the result of a call: a client of this node, or the node that forwarded it.
struct Origin {
  Ticket ticket;
  NodeId forwarded_by;  // zero: a client of this node
  OpId forwarded_op = 0;
};

class Coordinator {
 public:
  // `first_op` is above every operation of earlier lives of this node.
  Coordinator(const NodeLimits& limits, Replica& replica, OpId first_op)
      : limits_(limits), replica_(replica), next_op_(first_op) {}

  void Begin(const Turn& turn, Origin origin, Call call, Micros deadline);
  void Refuse(const Turn& turn, const Origin& origin, absl::Status status) {
    Fail(turn, origin, std::move(status));
  }
  void Resume(const Turn& turn, OpId op);  // the row of a write is in hand
  void RowUnreadable(const Turn& turn, OpId op, const absl::Status& status);
  void StoreReply(const Turn& turn, NodeId from, OpId op, absl::StatusCode code);
  void FetchReply(const Turn& turn, NodeId from, OpId op, peer::FetchReply reply);
  void FetchPageReply(const Turn& turn, NodeId from, OpId op, peer::FetchPageReply reply);
  void ForwardReply(const Turn& turn, NodeId from, OpId op, CallResult result);
  void PeerLost(const Turn& turn, NodeId node);
  // Other layouts are active: from here on all that is under way goes by them.
  void LayoutsChanged(const Turn& turn);
  void ClockAdvanced(const Turn& turn);  // writes that waited for the clock go on
  void Tick(const Turn& turn);
  // While it is, another replica coordinates what this node can hand on.
  void SetClockIsOff(bool off) { clock_is_off_ = off; }
  // From now on no late answer is waited for.
  void Drain(const Turn& turn);

  std::optional<Micros> next_deadline() const;
  // Operations begun from now on have this number or a higher one.
  OpId next_op() const { return next_op_; }
  // An operation with a lower number than `op` has not ended.
  bool AnyBefore(OpId op) const;
  size_t calls_in_flight() const { return ops_.size() - lingering_; }
  // Calls that a peer forwarded and that were wrong.
  uint64_t forwards_refused() const { return forwards_refused_; }
  size_t timers() const { return alarms_.size(); }

 private:
  // A put or delete that this node coordinates. Its stages: get the row in hand; perhaps read a quorum; mint
  // and store.
  struct WriteOp {
    Origin origin;
    std::shared_ptr<const View> view;  // keeps `keyspace` alive
    const KeyspaceSpec* keyspace = nullptr;
    bool is_delete = false;
    PutCall call;  // of a delete: without value
    std::string row_key;
    std::string own_key;       // of what this node changes: the row, or as a fallback its hint
    ReplicaSet replicas;       // and who stands in for them
    Quorum::Group need;        // by the newest layout
    Quorum::Group need_other;  // and while data moves, by the other one
    Micros deadline;
    uint64_t expires_ms = 0;
    std::optional<CausalContext> context;
    std::optional<Gather> gather;  // the quorum read before the write, if it needs one
    CutRecord found;               // what that found
    Quorum quorum;                 // of the stores; without replicas until they are sent
    Quorum::Slots to_resend = 0;   // refused by who knows a layout that this node does not
    bool behind = false;           // it begins anew, when this node has had time to learn the layout
    RecordBytes record;            // what is stored
    std::string context_after;     // encoded
    bool replied = false;          // kept for late answers: who does not confirm is owed a hint
  };
  struct ReadOp {
    Origin origin;
    std::shared_ptr<const View> view;
    const KeyspaceSpec* keyspace = nullptr;
    GetCall call;
    Gather gather;
    Micros started;
    Micros deadline;
    VersionVector floor;   // the answer must cover this: the call's contexts
    bool behind = false;   // as of a write
    bool replied = false;  // kept for late answers, to which a repair may be owed
  };
  struct ScanOp {
    Origin origin;
    std::shared_ptr<const View> view;
    const KeyspaceSpec* keyspace = nullptr;
    ScanCall call;
    Micros deadline;
    bool behind = false;  // as of a write
    size_t rows_max = 0;
    std::string range_end;  // row key at which the range that is read ends
    bool last_range = false;
    ScanMerge merge;
  };
  struct ForwardOp {
    Origin origin;
    NodeId to;
  };
  using Op = std::variant<WriteOp, ReadOp, ScanOp, ForwardOp>;

  // coordinator_write.cc
  void BeginWrite(const Turn& turn, Origin origin, PutCall call, bool is_delete, Micros deadline);
  absl::Status PrepareWrite(const Turn& turn, WriteOp& op) const;
  absl::Status PrepareQuorum(const Turn& turn, WriteOp& op) const;
  void SettleGather(const Turn& turn, OpId id, WriteOp& op);
  void ChangeRow(const Turn& turn, OpId id, WriteOp& op, RowTable::Entry& row, Record record);
  void Store(const Turn& turn, OpId id, WriteOp& op, RowTable::Entry& row, RecordBytes record);
  absl::StatusOr<RecordBytes> BaseOf(const Turn& turn, OpId id, WriteOp& op, RowTable::Entry*& row);
  void SendTo(const Turn& turn, OpId id, WriteOp& op, int slot);
  void SettleWrite(const Turn& turn, OpId id, WriteOp& op);
  void EndWrite(const Turn& turn, OpId id);
  void FailWrite(const Turn& turn, OpId id, absl::Status status);
  // coordinator_read.cc
  void BeginRead(const Turn& turn, Origin origin, GetCall call, Micros deadline);
  void SettleRead(const Turn& turn, OpId id, ReadOp& op);
  void FailLost(const Turn& turn, OpId id, Origin origin, const Fanout& fanout);
  void Repair(const Turn& turn, const ReadOp& op) const;
  void BeginScan(const Turn& turn, Origin origin, ScanCall call, Micros deadline);
  void SettleScan(const Turn& turn, OpId id, ScanOp& op);
  absl::Status FillPage(const Turn& turn, const ScanOp& op, const std::vector<Row>& rows,
                        ScanResult& page) const;
  // coordinator_layouts.cc
  template <typename AnyOp>
  void BeginAnewSoon(const Turn& turn, OpId id, AnyOp& op);
  void BeginAnew(const Turn& turn, OpId id);
  void Extend(const Turn& turn, OpId id, WriteOp& op);
  // coordinator.cc
  void Forward(const Turn& turn, Origin origin, NodeId to, Call call, Micros deadline);
  void Reply(const Turn& turn, const Origin& origin, CallResult result) const;
  void Fail(const Turn& turn, const Origin& origin, absl::Status status);
  void OnTimer(const Turn& turn, OpId id);
  template <typename T>
  T* Find(OpId id) {
    const auto op = ops_.find(id);
    return op == ops_.end() ? nullptr : std::get_if<T>(op->second.get());
  }
  template <typename T>
  T& Add(OpId id, T op, Micros deadline) {
    AlarmAt(deadline, id);
    return std::get<T>(*(ops_[id] = std::make_unique<Op>(std::move(op))));
  }
  void AlarmAt(Micros when, OpId id);

  // Writes that were replied to and still wait for answers: beyond these the oldest waits no more.
  static constexpr size_t kLingeringMax = 8192;
  // What a peer refused for its layout is tried again after so long.
  static constexpr Micros kLayoutPause = Millis(20);

  struct Alarm {
    Micros when;
    OpId id = 0;
    auto operator<=>(const Alarm&) const = default;
  };

  const NodeLimits limits_;
  Replica& replica_;
  OpId next_op_;
  absl::flat_hash_map<OpId, std::unique_ptr<Op>> ops_;
  std::vector<Alarm> alarms_;  // a heap, the earliest first; some of operations that ended
  std::vector<OpId> waiting_for_clock_;
  std::deque<OpId> lingerers_;  // in the order of their replies; some ended
  size_t lingering_ = 0;
  uint64_t forwards_refused_ = 0;
  bool clock_is_off_ = false;
  bool draining_ = false;
  LatencyQuantile fetch_latency_;
  ReplicaRangesCache ranges_;
};

}  // namespace gyre
