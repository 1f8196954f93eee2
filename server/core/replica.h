// The replica's half of the protocol: rows that peers (this node among them) store and fetch, and what is
// durable.
#pragma once

#include <absl/status/status.h>
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/core/key_span.h"
#include "server/core/message.h"
#include "server/core/row_table.h"
#include "server/core/turn.h"
#include "storage/causal/actor_clock.h"

namespace gyre {

// Hints that are durable here, for one node.
struct HintCount {
  uint64_t hints = 0;
  uint64_t data = 0;  // of them, that hold a record: a fallback's
  uint64_t bytes = 0;
  bool operator==(const HintCount&) const = default;
};

// The stable cuts that a node's merges go by. Set by StableCut (stable_cut.h).
struct Cuts {
  uint64_t held = 0;      // by this node
  uint64_t promised = 0;  // nothing at or below this is taken or made, but as a replica from a replica
  uint64_t all = 0;       // held by all members: what it makes collectible goes
  uint64_t full = 0;      // while this node fills: held by the replicas that do not
  uint64_t heard_of = 0;  // the highest that any member has confirmed: this node mints above it
  bool known = true;      // heard_of is at least what this node itself promised in an earlier life
};

class Replica {
 public:
  Replica(const NodeLimits& limits, ActorClock clock)
      : drift_ms_(limits.drift_ms),
        hint_bytes_max_(limits.hint_bytes),
        rows_(limits.row_cache_bytes),
        clock_(std::move(clock)) {}

  // `input` holds the message of the type that the name says.
  void StoreRow(const Turn& turn, FromPeer input);
  void FetchRow(const Turn& turn, FromPeer input);
  void FetchPage(const Turn& turn, FromPeer input) const;

  // A batch ended, well or badly. Tells those who asked.
  void Committed(const Turn& turn, gyre::Committed batch);

  // Puts the clock's state on its way to disk when that is due.
  void PersistClock(const Turn& turn, uint64_t floor = 0);
  // True once after the clock's state came back from disk: what waits for it should be tried again.
  bool TakeClockAdvanced() { return std::exchange(clock_advanced_, false); }

  // Changes a row that rows() gave, and makes it durable; `asked_by` is told (`more`: see RowCommit).
  void Commit(const Turn& turn, NodeId asked_by, OpId op, const std::string& row_key, RowTable::Entry& row,
              RecordBytes after, bool more = false);

  // A record that knows more of this node's own writes than its row does shows that the row lost some: ends
  // the actor.
  void NoticeOwnDots(const RecordBytes& ours, const RecordBytes& theirs);
  // The same of what a client's context claims.
  void NoticeOwnDots(const RecordBytes& ours, const VersionVector& claimed);

  // Puts down that `node` may lack what this node's row holds, or with a record, that: as a hint, by way of a
  // message to this node itself.
  void Owe(const Turn& turn, NodeId node, const std::string& row_key, const RecordBytes& record) const;
  // By node; without those for which nothing is held.
  const std::map<NodeId, HintCount>& hints() const { return hints_; }
  // By node, hints that were erased: delivered. Rising numbers.
  const std::map<NodeId, uint64_t>& hints_delivered() const { return hints_delivered_; }
  uint64_t hints_refused() const { return hints_refused_; }  // at the limit
  // Records with a counter further ahead of this node's clock than clocks may be.
  uint64_t records_from_the_future() const { return records_from_the_future_; }
  // Stores that no peer in its right mind asks for.
  uint64_t stores_refused() const { return stores_refused_; }
  // Whether the limit lets the hint at `hint_key`, which `row` has in hand, become `after`; counts it when
  // not. What is on its way to disk counts as held, and a hint that does not grow always fits.
  bool HintFits(const std::string& hint_key, const RowTable::Entry& row, const RecordBytes& after);
  // What was on disk before this life.
  void CountHint(const std::string& hint_key, const RecordBytes& record) { Count(hint_key, nullptr, record); }
  void ForgetHintCount(NodeId node);  // none was found on disk

  // A filling replica takes writes and gives data to comparisons, but answers no read: it may have forgotten
  // what it confirmed.
  void SetFilling(bool filling) { filling_ = filling; }
  bool filling() const { return filling_; }
  // So is one of what a layout gives it until it has fetched that (movement.h). Before `ready` it takes no
  // writes there: what it held there of old has to go first.
  void SetGaining(KeySpans spans, bool ready) {
    gaining_ = std::move(spans);
    gaining_ready_ = ready;
  }
  bool gaining() const { return !gaining_.empty(); }
  bool filling(std::string_view row_key) const {
    return filling_ || (gaining() && gaining_.Contain(row_key));
  }
  bool filling(std::string_view begin, std::string_view end) const {
    return filling_ || (gaining() && gaining_.Meet(begin, end));
  }
  // From here on rows that no layout gives this node are refused: they are being dropped.
  void SetDropping(bool dropping) { dropping_ = dropping; }

  Cuts& cuts() { return cuts_; }
  const Cuts& cuts() const { return cuts_; }
  // The cut under which this node reads a row, or rows of a span; 0 while it fills.
  uint64_t read_cut(std::string_view row_key) const { return filling(row_key) ? 0 : cuts_.held; }
  uint64_t read_cut(std::string_view begin, std::string_view end) const {
    return filling(begin, end) ? 0 : cuts_.held;
  }
  CutRecord AtCut(std::string_view row_key, RecordBytes record) const {
    return {std::move(record), read_cut(row_key)};
  }
  // What this node mints must be above; before `cuts().known` it mints nothing.
  uint64_t mint_floor() const { return std::max(cuts_.promised, cuts_.heard_of); }
  // Nothing is held for others that only they and this node may have, nor about to be.
  bool holds_no_data_hints() const { return data_hints_ == 0 && hint_commits_ == 0; }

  // Too much waits for the disk already: whoever can wait with what leads to more commits should.
  bool disk_is_behind() const { return bytes_on_the_way_ > kBytesOnTheWayMax; }
  void SetHealth(absl::Status status) { health_ = std::move(status); }
  // Not OK while the disk takes no writes.
  const absl::Status& health() const { return health_; }
  RowTable& rows() { return rows_; }
  ActorClock& clock() { return clock_; }
  const ActorClock& clock() const { return clock_; }

 private:
  static constexpr uint64_t kBytesOnTheWayMax = 4 << 20;

  void Count(const std::string& hint_key, const RecordBytes& before, const RecordBytes& after);
  absl::StatusCode CheckStore(const Turn& turn, const peer::StoreRow& store) const;
  bool IsBelowCut(const peer::StoreRow& store) const;

  const uint64_t drift_ms_;
  const uint64_t hint_bytes_max_;
  std::map<NodeId, HintCount> hints_;
  std::map<NodeId, uint64_t> hints_delivered_;
  uint64_t hint_bytes_ = 0;             // durable
  uint64_t hint_bytes_on_the_way_ = 0;  // of hints that are becoming durable
  uint64_t hints_refused_ = 0;
  uint64_t data_hints_ = 0;
  uint64_t hint_commits_ = 0;  // on their way to disk
  uint64_t stores_refused_ = 0;
  uint64_t records_from_the_future_ = 0;
  uint64_t bytes_on_the_way_ = 0;  // of rows and hints that are becoming durable
  bool filling_ = false;
  KeySpans gaining_;
  bool gaining_ready_ = true;
  bool dropping_ = false;
  Cuts cuts_;
  RowTable rows_;
  ActorClock clock_;
  bool clock_on_its_way_ = false;
  bool clock_advanced_ = false;
  absl::Status health_;
};

}  // namespace gyre
