// The replica's half of the protocol.
#include "server/core/replica.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "server/core/replica_set.h"
#include "storage/format/row_key.h"

namespace gyre {
namespace {

uint64_t BytesOf(const std::string& row_key, const RecordBytes& record) {
  return row_key.size() + (record ? record->size() : 0);
}

// What a hint counts for: the hinted row's key and the record.
uint64_t BytesOfHint(const std::string& hint_key, const RecordBytes& record) {
  return record ? HintedRowKey(hint_key).size() + record->size() : 0;
}

}  // namespace

absl::StatusCode Replica::CheckStore(const Turn& turn, const peer::StoreRow& store) const {
  if (!health_.ok()) return health_.code();
  RowKeyParts parts;
  if (!ParseRowKey(store.row_key, parts) || store.record == nullptr)
    return absl::StatusCode::kInvalidArgument;
  if (store.hint_for && (store.hint_for == turn.self || !turn.layouts.HasMember(store.hint_for))) {
    return absl::StatusCode::kInvalidArgument;
  }
  const KeyspaceSpec* const keyspace = turn.view()->Keyspace(parts.keyspace);
  if (keyspace == nullptr) return absl::StatusCode::kFailedPrecondition;
  if (!store.hint_for && !gaining_ready_ && gaining_.Contain(store.row_key)) {
    return absl::StatusCode::kUnavailable;
  }
  if (!store.hint_for && dropping_ && !turn.layouts.moving() &&
      ReplicaSet::Of(*turn.view(), *keyspace, Token{parts.token}).SlotOf(turn.self) < 0) {
    return absl::StatusCode::kFailedPrecondition;
  }
  // Who takes a hint with something that may be below the next cut could bring it back after that. (0: no
  // record, which the merge will say.)
  const uint64_t oldest = store.hint_for ? OldestCounter(*store.record) : 0;
  if (oldest > 0 && oldest <= cuts_.promised) return absl::StatusCode::kFailedPrecondition;
  return absl::StatusCode::kOk;
}

// All of it was known or superseded when this node's cut rose, though there may be nothing left that says so.
bool Replica::IsBelowCut(const peer::StoreRow& store) const {
  // What this node held of its own when it lost its store says nothing. What it holds beside what it gains
  // does.
  const uint64_t held = filling_ ? 0 : cuts_.held;
  const uint64_t cut = filling(store.row_key) ? std::max(cuts_.full, held) : held;
  if (store.cut >= cut || IsEmptyRecord(store.record)) return false;
  return NewestCounter(*store.record) <= cut && DecodeRecord(*store.record).ok();
}

void Replica::StoreRow(const Turn& turn, FromPeer input) {
  const auto& store = std::get<peer::StoreRow>(input.message.body);
  const auto answer = [&](absl::StatusCode code) {
    turn.Send(input.from, input.message.op, peer::StoreReply{code});
  };
  if (const absl::StatusCode code = CheckStore(turn, store); code != absl::StatusCode::kOk) {
    if (code == absl::StatusCode::kInvalidArgument) ++stores_refused_;
    return answer(code);
  }
  RowKeyParts parts;
  ParseRowKey(store.row_key, parts);
  const ConflictRule rule = turn.view()->Keyspace(parts.keyspace)->conflict;
  const std::string key = store.hint_for ? MakeHintKey(store.hint_for.value, store.row_key) : store.row_key;
  RowTable::Entry* const row = rows_.Find(key);
  if (row == nullptr) return rows_.Park(key, std::move(input), turn.out);
  // Taken all the same: to refuse it would keep the replicas apart for ever.
  if (NewestCounter(*store.record) > CounterOfMillis(turn.now.wall_ms + drift_ms_)) {
    ++records_from_the_future_;
  }
  const bool below = !store.hint_for && IsBelowCut(store);
  RecordBytes merged = row->latest;
  if (!below) {
    // Hints are merged as they came: none of what they hold is at or below a cut.
    const absl::StatusOr<CutRecord> both =
        store.hint_for ? MergeAtCuts({row->latest}, {store.record}, rule)
                       : MergeAtCuts(AtCut(key, row->latest), {store.record, store.cut}, rule);
    if (!both.ok()) {
      ++stores_refused_;
      return answer(both.status().code());
    }
    merged = store.hint_for ? both->record : Collected(both->record, cuts_.all);
    if (!store.hint_for && IsEmptyRecord(merged)) merged = nullptr;
  }
  if (store.hint_for && !HintFits(key, *row, merged)) return answer(absl::StatusCode::kResourceExhausted);
  if (!below) NoticeOwnDots(row->latest, store.record);
  // The sender had less than this node, or what is superseded: it learns that here and not by another round.
  const bool more = store.return_more && (merged == nullptr || *merged != *store.record);
  if (more) {
    turn.Send(input.from, 0,
              peer::StoreRow{.row_key = store.row_key,
                             .record = merged ? merged : EmptyRecord(),
                             .cut = read_cut(store.row_key),
                             .repair = true});
  }
  if (below) return answer(absl::StatusCode::kOutOfRange);
  // Also what changes nothing must be durable before it is confirmed.
  if (merged == row->latest && row->commits_pending == 0) {
    return turn.Send(input.from, input.message.op, peer::StoreReply{.more = more});
  }
  Commit(turn, input.from, input.message.op, key, *row, std::move(merged), more);
}

void Replica::Owe(const Turn& turn, NodeId node, const std::string& row_key,
                  const RecordBytes& record) const {
  turn.Send(turn.self, 0,
            peer::StoreRow{.row_key = row_key, .record = record, .hint_for = node, .repair = true});
}

bool Replica::HintFits(const std::string& hint_key, const RowTable::Entry& row, const RecordBytes& after) {
  const uint64_t bytes = BytesOfHint(hint_key, after);
  const uint64_t now = BytesOfHint(hint_key, row.latest);
  if (bytes <= now || hint_bytes_ + hint_bytes_on_the_way_ + (bytes - now) <= hint_bytes_max_) return true;
  ++hints_refused_;
  return false;
}

void Replica::Count(const std::string& hint_key, const RecordBytes& before, const RecordBytes& after) {
  uint64_t node = 0;
  std::string_view row_key;
  if (!ParseHintKey(hint_key, node, row_key)) return;
  HintCount& count = hints_[NodeId{node}];
  const auto add = [&](uint64_t& to, uint64_t plus, uint64_t minus) {
    to = to + plus - std::min(to + plus, minus);
  };
  const uint64_t plus = BytesOfHint(hint_key, after);
  const uint64_t minus = BytesOfHint(hint_key, before);
  const auto is_data = [](const RecordBytes& record) { return record && !IsEmptyRecord(record) ? 1 : 0; };
  add(count.hints, after ? 1 : 0, before ? 1 : 0);
  add(count.data, is_data(after), is_data(before));
  add(data_hints_, is_data(after), is_data(before));
  add(count.bytes, plus, minus);
  add(hint_bytes_, plus, minus);
  if (count.hints == 0) hints_.erase(NodeId{node});
  if (after == nullptr) ++hints_delivered_[NodeId{node}];
}

void Replica::ForgetHintCount(NodeId node) {
  const auto count = hints_.find(node);
  if (count == hints_.end()) return;
  hint_bytes_ -= std::min(hint_bytes_, count->second.bytes);
  data_hints_ -= std::min(data_hints_, count->second.data);
  hints_.erase(count);
}

void Replica::NoticeOwnDots(const RecordBytes& ours, const RecordBytes& theirs) {
  if (ours == theirs || theirs == nullptr) return;
  const Actor self = clock_.actor();
  // What was collected is known, too.
  const uint64_t known = std::max(ours ? SeenCounter(*ours, self) : 0, cuts_.all);
  if (SeenCounter(*theirs, self) > known) clock_.Retire();
}

void Replica::NoticeOwnDots(const RecordBytes& ours, const VersionVector& claimed) {
  const Actor self = clock_.actor();
  const uint64_t shown = claimed.CounterOf(self);
  if (shown > std::max(ours ? SeenCounter(*ours, self) : 0, cuts_.all)) clock_.Retire();
}

void Replica::FetchRow(const Turn& turn, FromPeer input) {
  const auto& fetch = std::get<peer::FetchRow>(input.message.body);
  if (filling_ || (!fetch.hint_for && filling(fetch.row_key))) {
    return turn.Send(input.from, input.message.op, peer::FetchReply{.code = absl::StatusCode::kUnavailable});
  }
  const std::string key = fetch.hint_for ? MakeHintKey(fetch.hint_for.value, fetch.row_key) : fetch.row_key;
  const RowTable::Entry* row = rows_.Find(key);
  if (row == nullptr) return rows_.Park(key, std::move(input), turn.out);
  // A fallback that holds nothing knows nothing: it must not be taken for a replica that has no such row.
  if (fetch.hint_for && (row->committed == nullptr || IsEmptyRecord(row->committed))) {
    return turn.Send(input.from, input.message.op, peer::FetchReply{.code = absl::StatusCode::kNotFound});
  }
  turn.Send(input.from, input.message.op,
            peer::FetchReply{.record = row->committed, .cut = fetch.hint_for ? 0 : read_cut(key)});
}

void Replica::FetchPage(const Turn& turn, FromPeer input) const {
  auto& page = std::get<peer::FetchPage>(input.message.body);
  if (filling(page.after, page.end)) {
    return turn.Send(input.from, input.message.op,
                     peer::FetchPageReply{.code = absl::StatusCode::kUnavailable});
  }
  page.rows_max = std::clamp<uint32_t>(page.rows_max, 1, ScanCall::kRowsMax);
  page.bytes_max = std::min(page.bytes_max, peer::FetchPage::kBytesMax);
  page.skip_damage = page.move;  // what is passed over comes from others (movement.h); a scan is complete
  turn.out.page_reads.push_back({.asked_by = input.from, .op = input.message.op, .page = std::move(page)});
}

void Replica::Commit(const Turn& turn, NodeId asked_by, OpId op, const std::string& row_key,
                     RowTable::Entry& row, RecordBytes after, bool more) {
  bytes_on_the_way_ += BytesOf(row_key, after);
  if (IsHintKey(row_key)) {
    ++hint_commits_;
    hint_bytes_on_the_way_ += BytesOfHint(row_key, after);
  }
  turn.out.commits.push_back({asked_by, op, row_key, row.latest, after, more, &row});
  rows_.Change(row, std::move(after));
}

void Replica::Committed(const Turn& turn, gyre::Committed batch) {
  const bool ok = batch.status.ok();
  for (const RowCommit& row : batch.rows) __builtin_prefetch(row.row);  // as RowTable::Expect does
  for (const RowCommit& row : batch.rows) {
    bytes_on_the_way_ -= BytesOf(row.row_key, row.after);
    const bool is_hint = IsHintKey(row.row_key);
    if (is_hint) {
      --hint_commits_;
      hint_bytes_on_the_way_ -= BytesOfHint(row.row_key, row.after);
    }
    if (ok) {
      rows_.ChangeCommitted(*row.row, row.after);
      if (is_hint) Count(row.row_key, row.before, row.after);
    } else {
      rows_.ChangeFailed(*row.row);
    }
    if (row.asked_by) turn.Send(row.asked_by, row.op, peer::StoreReply{batch.status.code(), row.more});
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
