// The replica's half of the protocol.
#include "server/core/replica.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "storage/format/row_key.h"

namespace gyre {

void Replica::StoreRow(const Turn& turn, FromPeer input) {
  const auto& store = std::get<peer::StoreRow>(input.message.body);
  const auto answer = [&](absl::StatusCode code) {
    turn.Send(input.from, input.message.op, peer::StoreReply{code});
  };
  if (!health_.ok()) return answer(health_.code());
  RowKeyParts parts;
  if (!ParseRowKey(store.row_key, parts)) return answer(absl::StatusCode::kInvalidArgument);
  const KeyspaceSpec* keyspace = turn.view->Keyspace(parts.keyspace);
  if (keyspace == nullptr) return answer(absl::StatusCode::kFailedPrecondition);
  RowTable::Entry* const row = rows_.Find(store.row_key);
  if (row == nullptr) {
    const std::string row_key = store.row_key;
    return rows_.Park(row_key, std::move(input), turn.out);
  }
  absl::StatusOr<RecordBytes> merged = MergeBytes(row->latest, store.record, keyspace->conflict);
  if (!merged.ok()) return answer(merged.status().code());
  NoticeOwnDots(row->latest, store.record);
  // The sender had less than this node, which it learns by the answer and not by another round.
  if (store.return_more && *merged != store.record && **merged != *store.record) {
    turn.Send(input.from, 0, peer::StoreRow{.row_key = store.row_key, .record = *merged, .repair = true});
  }
  // Also what changes nothing must be durable before it is confirmed.
  if (*merged == row->latest && row->commits_pending == 0) return answer(absl::StatusCode::kOk);
  Commit(turn, input.from, input.message.op, store.row_key, *row, *std::move(merged));
}

void Replica::NoticeOwnDots(const RecordBytes& ours, const RecordBytes& theirs) {
  if (ours == theirs || theirs == nullptr) return;
  const Actor self = clock_.actor();
  const uint64_t known = ours ? SeenCounter(*ours, self) : 0;
  if (SeenCounter(*theirs, self) > known) clock_.Retire();
}

void Replica::NoticeOwnDots(const RecordBytes& ours, const VersionVector& claimed) {
  const Actor self = clock_.actor();
  const uint64_t shown = claimed.CounterOf(self);
  if (shown > 0 && shown > (ours ? SeenCounter(*ours, self) : 0)) clock_.Retire();
}

void Replica::FetchRow(const Turn& turn, FromPeer input) {
  const std::string& row_key = std::get<peer::FetchRow>(input.message.body).row_key;
  const RowTable::Entry* row = rows_.Find(row_key);
  if (row == nullptr) {
    const std::string copy = row_key;
    return rows_.Park(copy, std::move(input), turn.out);
  }
  turn.Send(input.from, input.message.op, peer::FetchReply{absl::StatusCode::kOk, row->committed});
}

void Replica::FetchPage(const Turn& turn, FromPeer input) {
  auto& page = std::get<peer::FetchPage>(input.message.body);
  page.rows_max = std::clamp<uint32_t>(page.rows_max, 1, ScanCall::kRowsMax);
  page.bytes_max = std::min(page.bytes_max, peer::FetchPage::kBytesMax);
  turn.out.page_reads.push_back({.asked_by = input.from, .op = input.message.op, .page = std::move(page)});
}

void Replica::Commit(const Turn& turn, NodeId asked_by, OpId op, const std::string& row_key,
                     RowTable::Entry& row, RecordBytes after) {
  turn.out.commits.push_back({asked_by, op, row_key, row.latest, after});
  rows_.Change(row, std::move(after));
}

void Replica::Committed(const Turn& turn, gyre::Committed batch) {
  const bool ok = batch.status.ok();
  for (const RowCommit& row : batch.rows) {
    if (ok) {
      rows_.ChangeCommitted(row.row_key, row.after);
    } else {
      rows_.ChangeFailed(row.row_key);
    }
    if (row.asked_by) turn.Send(row.asked_by, row.op, peer::StoreReply{batch.status.code()});
  }
  if (batch.actor) {
    clock_on_its_way_ = false;
    clock_advanced_ = true;  // after a failure too: what waits asks for its lease again
    if (ok) clock_.Persisted(*batch.actor);
  }
  // The rows may lack what this node minted and already sent to others.
  if (!ok && !batch.rows.empty()) clock_.Retire();
}

void Replica::PersistClock(const Turn& turn, uint64_t floor) {
  if (clock_on_its_way_ || !health_.ok()) return;
  if (floor == 0 && !clock_.NeedsPersist(turn.now.wall_ms)) return;
  turn.out.actor = clock_.StateToPersist(turn.now.wall_ms, floor, drift_ms_);
  clock_on_its_way_ = true;
}

}  // namespace gyre
