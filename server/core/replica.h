// The replica's half of the protocol: rows that peers (this node among them) store and fetch, and what is
// durable.
#pragma once

#include <absl/status/status.h>
#include <optional>
#include <string>
#include <vector>

#include "server/core/message.h"
#include "server/core/row_table.h"
#include "server/core/turn.h"
#include "storage/causal/actor_clock.h"

namespace gyre {

class Replica {
 public:
  Replica(const NodeLimits& limits, ActorClock clock)
      : drift_ms_(limits.drift_ms), rows_(limits.row_cache_bytes), clock_(std::move(clock)) {}

  // `input` holds the message of the type that the name says.
  void StoreRow(const Turn& turn, FromPeer input);
  void FetchRow(const Turn& turn, FromPeer input);
  static void FetchPage(const Turn& turn, FromPeer input);

  // A batch ended, well or badly. Tells those who asked.
  void Committed(const Turn& turn, gyre::Committed batch);

  // Puts the clock's state on its way to disk when that is due.
  void PersistClock(const Turn& turn, uint64_t floor = 0);
  // True once after the clock's state came back from disk: what waits for it should be tried again.
  bool TakeClockAdvanced() { return std::exchange(clock_advanced_, false); }

  // Changes a row that rows() gave, and makes it durable; `asked_by` is told.
  void Commit(const Turn& turn, NodeId asked_by, OpId op, const std::string& row_key, RowTable::Entry& row,
              RecordBytes after);

  // A record that knows more of this node's own writes than its row does shows that the row lost some: ends
  // the actor.
  void NoticeOwnDots(const RecordBytes& ours, const RecordBytes& theirs);
  // The same of what a client's context claims.
  void NoticeOwnDots(const RecordBytes& ours, const VersionVector& claimed);

  void SetHealth(absl::Status status) { health_ = std::move(status); }
  // Not OK while the disk takes no writes.
  const absl::Status& health() const { return health_; }
  RowTable& rows() { return rows_; }
  ActorClock& clock() { return clock_; }
  const ActorClock& clock() const { return clock_; }

 private:
  const uint64_t drift_ms_;
  RowTable rows_;
  ActorClock clock_;
  bool clock_on_its_way_ = false;
  bool clock_advanced_ = false;
  absl::Status health_;
};

}  // namespace gyre
