// Gets and scans: from the call to the merged answer, and the repair that it owes to stale replicas.
#include <algorithm>
#include <limits>
#include <utility>

#include "server/core/acks.h"
#include "server/core/coordinator.h"
#include "server/core/coordinator_ops.h"
#include "storage/format/context_codec.h"
#include "storage/format/row_key.h"

namespace gyre {
namespace {

constexpr uint64_t kLastToken = std::numeric_limits<uint64_t>::max();
constexpr Micros kPageLate = Millis(100);  // of a scan: so late is one of which the disk or the node is ill

std::vector<ReadValue> ValuesOf(const Record& record, uint64_t now_ms, bool keys_only) {
  std::vector<ReadValue> values;
  for (const Version* version : VisibleVersions(record, now_ms)) {
    values.push_back({keys_only ? std::string() : version->value, version->dot, version->expires_ms});
  }
  return values;
}

// Whether a merge of answers has seen all that `floor` has. What the cut passed is known to all, though no
// record may say so any more.
bool HasSeen(const VersionVector& seen, uint64_t cut, const VersionVector& floor) {
  return std::ranges::all_of(floor.entries(), [&](const VersionVector::Entry& entry) {
    return entry.counter <= cut || seen.Covers(Dot{entry.actor, entry.counter});
  });
}

// The range that holds `token`; the first one may wrap, so that it also holds what lies behind the last end.
const ReplicaRange& RangeOf(const std::vector<ReplicaRange>& ranges, Token token) {
  const auto range = std::lower_bound(ranges.begin(), ranges.end(), token,
                                      [](const ReplicaRange& r, Token t) { return r.end < t; });
  return range == ranges.end() ? ranges.front() : *range;
}

}  // namespace

void Coordinator::BeginRead(const Turn& turn, Origin origin, GetCall call, Micros deadline) {
  const absl::StatusOr<const KeyspaceSpec*> keyspace = FindKeyspace(*turn.view(), call.keyspace);
  if (!keyspace.ok()) return Fail(turn, origin, keyspace.status());
  if (absl::Status status = CheckKey(call.key); !status.ok()) return Fail(turn, origin, std::move(status));
  const Token token = TokenOf(call.key);
  const ReplicaSet replicas = ReadersOf(turn, **keyspace, token, call.strict);
  const absl::StatusOr<int> need =
      NeededReplicas("r", call.r, (*keyspace)->r, AsRead(turn, **keyspace), replicas.size());
  if (!need.ok()) return Fail(turn, origin, need.status());
  if (call.contexts.size() > GetCall::kContextsMax) {
    return Fail(
        turn, origin,
        absl::InvalidArgumentError("contexts are " + std::to_string(call.contexts.size()) +
                                   "; there may be at most " + std::to_string(GetCall::kContextsMax)));
  }
  VersionVector floor;
  for (const std::string& encoded : call.contexts) {
    const absl::StatusOr<CausalContext> context = DecodeContext(encoded, (*keyspace)->id, call.key);
    if (!context.ok()) return Fail(turn, origin, context.status());
    floor.Join(context->seen);
  }
  const OpId id = next_op_++;
  std::string row_key = MakeRowKey((*keyspace)->id, token.value, call.key);
  ReadOp& op = Add(id,
                   ReadOp{.origin = origin,
                          .view = turn.view(),
                          .keyspace = *keyspace,
                          .call = std::move(call),
                          .gather = Gather(replicas, *need, std::move(row_key)),
                          .started = turn.now.steady,
                          .deadline = deadline,
                          .floor = std::move(floor)},
                   deadline);
  if (*need < replicas.size()) AlarmAt(turn.now.steady + fetch_latency_.p95(), id);
  op.gather.Start(turn, id);
  SettleRead(turn, id, op);
}

// Too many replicas cannot answer. `origin` is copied: its operation ends here.
void Coordinator::FailLost(const Turn& turn, OpId id, Origin origin, const Fanout& fanout) {
  const int need = fanout.quorum().need();
  Fail(turn, origin,
       WithAcks(absl::UnavailableError(DescribeMissing(turn, fanout.replicas(), need)),
                {fanout.quorum().acks(), need}));
  ops_.erase(id);
}

void Coordinator::SettleRead(const Turn& turn, OpId id, ReadOp& op) {
  const Fanout& fanout = op.gather.fanout();
  if (fanout.verdict() == Verdict::kLost) return FailLost(turn, id, op.origin, fanout);
  if (fanout.verdict() == Verdict::kPending) return;
  if (!op.replied) {
    Record record;
    const absl::StatusOr<CutRecord> merged = op.gather.Merged(op.keyspace->conflict);
    absl::Status status = merged.status();
    if (status.ok() && merged->record != nullptr) {
      absl::StatusOr<Record> decoded = DecodeRecord(*merged->record);
      status = decoded.status();
      if (decoded.ok()) record = *std::move(decoded);
    }
    if (status.ok() && !HasSeen(record.seen, merged->cut, op.floor)) {
      // The replicas that answered are behind what the caller has seen: the others are asked, too.
      if (!fanout.waiting()) op.gather.AskNext(turn, id);
      if (fanout.waiting()) return;
      status = NotSeenYet();
    }
    op.replied = true;
    if (status.ok()) {
      Reply(turn, op.origin,
            {.result = GetResult{ValuesOf(record, turn.now.wall_ms, false),
                                 EncodeContext({.seen = record.seen}, op.keyspace->id, op.call.key)}});
    } else {
      Fail(turn, op.origin, std::move(status));
    }
  }
  if (fanout.waiting()) return;
  Repair(turn, op);
  ops_.erase(id);
}

// A put without a ticket: stale replicas get what the merge of all answers produced.
void Coordinator::Repair(const Turn& turn, const ReadOp& op) const {
  const absl::StatusOr<CutRecord> merged = op.gather.Merged(op.keyspace->conflict);
  if (!merged.ok() || merged->record == nullptr) return;
  for (const NodeId node : op.gather.Stale(merged->record)) {
    turn.Send(
        node, 0,
        peer::StoreRow{
            .row_key = op.gather.row_key(), .record = merged->record, .cut = merged->cut, .repair = true});
  }
}

void Coordinator::BeginScan(const Turn& turn, Origin origin, ScanCall call, Micros deadline) {
  const absl::StatusOr<const KeyspaceSpec*> found = FindKeyspace(*turn.view(), call.keyspace);
  if (!found.ok()) return Fail(turn, origin, found.status());
  const KeyspaceSpec& keyspace = **found;
  RowKeyParts at = {.keyspace = keyspace.id};
  if (!call.cursor.empty() &&
      (!ParseRowKey(call.cursor, at) || at.keyspace != keyspace.id || call.cursor.size() > kRowKeyBytesMax)) {
    return Fail(turn, origin,
                absl::InvalidArgumentError("cursor is not one that a scan of this keyspace returned"));
  }
  if (call.limit > ScanCall::kRowsMax) {
    return Fail(turn, origin,
                absl::InvalidArgumentError("limit is " + std::to_string(call.limit) +
                                           "; it must be 1 to 1000, or 0 for the server's choice"));
  }
  const KeyspaceSpec& read = AsRead(turn, keyspace);
  const ReplicaRange& range = RangeOf(ranges_.Of(turn.reads(), read.n), Token{at.token});
  const bool last = range.whole() || range.end < Token{at.token} || range.end.value == kLastToken;
  const ReplicaSet replicas = ReplicaSet::OfMembers(*turn.reads(), range.members, read.n);
  const absl::StatusOr<int> need = NeededReplicas("r", call.r, keyspace.r, read, replicas.size());
  if (!need.ok()) return Fail(turn, origin, need.status());
  const size_t rows_max = call.limit == 0 ? ScanCall::kRowsMax : call.limit;
  peer::FetchPage page = {
      .after = call.cursor.empty() ? RowKeyFloor(keyspace.id, 0) : call.cursor,
      .end = RowKeyCeiling(keyspace.id, last ? kLastToken : range.end.value),
      .rows_max = static_cast<uint32_t>(rows_max),
      .bytes_max = peer::FetchPage::kBytesMax,
  };
  const OpId id = next_op_++;
  ScanOp& op = Add(id,
                   ScanOp{.origin = origin,
                          .view = turn.view(),
                          .keyspace = &keyspace,
                          .call = std::move(call),
                          .deadline = deadline,
                          .rows_max = rows_max,
                          .range_end = page.end,
                          .last_range = last,
                          .merge = ScanMerge(replicas, *need, std::move(page))},
                   deadline);
  AlarmAt(turn.now.steady + kPageLate, id);
  op.merge.Start(turn, id);
  SettleScan(turn, id, op);
}

void Coordinator::SettleScan(const Turn& turn, OpId id, ScanOp& op) {
  const Fanout& fanout = op.merge.fanout();
  if (fanout.verdict() == Verdict::kLost) return FailLost(turn, id, op.origin, fanout);
  if (fanout.verdict() == Verdict::kPending) return;
  absl::StatusOr<ScanMerge::Merged> merged = op.merge.Take(op.keyspace->conflict);
  absl::Status status = merged.status();
  ScanResult page;
  if (status.ok()) {
    if (merged->rows.size() > op.rows_max) {
      merged->rows.resize(op.rows_max);
      merged->covered_to = merged->rows.back().row_key;
    }
    const bool complete = op.last_range && merged->covered_to == op.range_end;
    if (!complete) page.next_cursor = std::move(merged->covered_to);
    status = FillPage(turn, op, merged->rows, page);
  }
  if (status.ok()) {
    Reply(turn, op.origin, {.result = std::move(page)});
  } else {
    Fail(turn, op.origin, std::move(status));
  }
  ops_.erase(id);
}

absl::Status Coordinator::FillPage(const Turn& turn, const ScanOp& op, const std::vector<Row>& rows,
                                   ScanResult& page) const {
  for (const Row& row : rows) {
    RowKeyParts parts;
    if (!ParseRowKey(row.row_key, parts) || !parts.key.starts_with(op.call.prefix)) continue;
    absl::StatusOr<Record> record = DecodeRecord(*row.record);
    if (!record.ok()) return record.status();
    std::vector<ReadValue> values = ValuesOf(*record, turn.now.wall_ms, op.call.keys_only);
    if (values.empty()) continue;  // deleted or expired
    page.rows.push_back({std::string(parts.key), std::move(values),
                         EncodeContext({.seen = record->seen}, op.keyspace->id, std::string(parts.key))});
  }
  return absl::OkStatus();
}

}  // namespace gyre
