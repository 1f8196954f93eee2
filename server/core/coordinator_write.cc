// Puts and deletes: from the call to the record that every replica stores.
#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "server/core/acks.h"
#include "server/core/coordinator.h"
#include "server/core/coordinator_ops.h"
#include "storage/format/context_codec.h"
#include "storage/format/row_key.h"

namespace gyre {
namespace {

constexpr int64_t kTtlMillisMin = 1000;
constexpr int64_t kTtlMillisMax = int64_t{100} * 365 * 24 * 3600 * 1000;

const Version* FindWrite(const Record& record, const WriteId& id) {
  if (id.empty()) return nullptr;
  for (const Version& version : record.versions) {
    if (version.write_id == id) return &version;
  }
  return nullptr;
}

}  // namespace

void Coordinator::BeginWrite(const Turn& turn, Origin origin, PutCall call, bool is_delete, Micros deadline) {
  WriteOp op = {.origin = origin,
                .view = turn.view(),
                .is_delete = is_delete,
                .call = std::move(call),
                .deadline = deadline};
  if (absl::Status status = PrepareWrite(turn, op); !status.ok())
    return Fail(turn, origin, std::move(status));
  // A primary, or where none is up, who stands in for one.
  const int own = op.replicas.SlotOf(turn.self);
  // Of those that are up, one whose clock is right.
  const bool hand_on = clock_is_off_ && !origin.forwarded_by;
  // And one that holds the key: a new replica, while it fetches, would have to read it from the others.
  const bool moving = turn.layouts.moving();
  const ReplicaSet readers =
      moving ? ReplicaSet::Of(*turn.reads(), AsRead(turn, *op.keyspace), TokenOf(op.call.key)) : ReplicaSet();
  const auto rank = [&](int slot) {
    return (op.replicas.hint_for(slot) ? 4 : 0) + (moving && readers.SlotOf(op.replicas[slot]) < 0 ? 2 : 0) +
           (hand_on && slot == own ? 1 : 0);
  };
  int best = -1;
  for (int slot = 0; slot < op.replicas.size(); ++slot) {
    if (turn.Up(op.replicas[slot]) && (best < 0 || rank(slot) < rank(best))) best = slot;
  }
  assert(best >= 0);  // enough of them are up
  const bool coordinates = own >= 0 && rank(own) <= rank(best);
  if (!coordinates) {
    const NodeId to = op.replicas[best];
    if (origin.forwarded_by) {
      return Fail(turn, origin,
                  absl::UnavailableError("the nodes disagree on who holds this key or on who is up, "
                                         "which passes. Nothing was changed; try again"));
    }
    if (!is_delete) return Forward(turn, origin, to, std::move(op.call), deadline);
    return Forward(turn, origin, to,
                   DeleteCall{std::move(op.call.keyspace), std::move(op.call.key), op.call.w, op.call.strict,
                              std::move(op.call.context)},
                   deadline);
  }
  const NodeId hint_for = op.replicas.hint_for(own);
  op.own_key = hint_for ? MakeHintKey(hint_for.value, op.row_key) : op.row_key;
  const OpId id = next_op_++;
  Add(id, std::move(op), deadline);
  Resume(turn, id);
}

// Everything that can be said about a write before its row is read.
absl::Status Coordinator::PrepareWrite(const Turn& turn, WriteOp& op) const {
  absl::StatusOr<const KeyspaceSpec*> keyspace = FindKeyspace(*turn.view(), op.call.keyspace);
  if (!keyspace.ok()) return keyspace.status();
  op.keyspace = *keyspace;
  if (absl::Status status = CheckKey(op.call.key); !status.ok()) return status;
  if (op.call.value.size() > limits_.value_bytes) {
    return absl::InvalidArgumentError("value has " + std::to_string(op.call.value.size()) +
                                      " bytes; the limit is " + std::to_string(limits_.value_bytes) +
                                      " (limits.value_bytes)");
  }
  if (op.call.ttl_ms && (*op.call.ttl_ms < kTtlMillisMin || *op.call.ttl_ms > kTtlMillisMax)) {
    return absl::InvalidArgumentError("ttl is " + std::to_string(*op.call.ttl_ms) +
                                      " ms; it must be from 1 second to 100 years");
  }
  if (op.call.expires_ms) {
    if (op.call.ttl_ms) return absl::InvalidArgumentError("ttl and expires_at exclude each other");
    if (*op.call.expires_ms > turn.now.wall_ms + kTtlMillisMax) {
      return absl::InvalidArgumentError("expires_at is " + std::to_string(*op.call.expires_ms) +
                                        " ms since 1970; it must be at most 100 years ahead");
    }
  }
  const uint64_t ttl_ms = op.call.ttl_ms ? static_cast<uint64_t>(*op.call.ttl_ms) : op.keyspace->ttl_ms;
  op.expires_ms = op.call.expires_ms ? *op.call.expires_ms : ttl_ms == 0 ? 0 : turn.now.wall_ms + ttl_ms;
  if (op.call.retry && op.call.write_id.empty()) {
    return absl::InvalidArgumentError(
        "write_id is empty; a retry must carry the write_id of the first attempt");
  }
  if (op.call.context) {
    absl::StatusOr<CausalContext> context = DecodeContext(*op.call.context, op.keyspace->id, op.call.key);
    if (!context.ok()) return context.status();
    op.context = *std::move(context);
  } else if (op.call.retry) {
    op.context.emplace();  // a retry supersedes nothing that its first attempt may not have seen
  }
  const Token token = TokenOf(op.call.key);
  op.row_key = MakeRowKey(op.keyspace->id, token.value, op.call.key);
  op.replicas = HoldersOf(turn, *op.keyspace, token, op.call.strict);
  return PrepareQuorum(turn, op);
}

// How many of `replicas` must confirm, by each active layout; whether so many can be reached.
absl::Status Coordinator::PrepareQuorum(const Turn& turn, WriteOp& op) const {
  const ReplicaSet& replicas = op.replicas;
  const absl::StatusOr<int> need =
      NeededReplicas("w", op.call.w, op.keyspace->w, *op.keyspace, std::popcount(replicas.first()));
  if (!need.ok()) return need.status();
  op.need = {replicas.first(), static_cast<uint8_t>(*need)};
  op.need_other = {};
  if (replicas.second() != 0) {
    // A layout with fewer replicas asks for no more than it has.
    const int size = std::popcount(replicas.second());
    const ReplicaCount& count = op.call.w ? *op.call.w : op.keyspace->w;
    const int there = CountOf(count, size);
    op.need_other = {replicas.second(), static_cast<uint8_t>(there == 0 ? size : there)};
  }
  for (const Quorum::Group& group : {op.need, op.need_other}) {
    int up = 0;
    for (int slot = 0; slot < replicas.size(); ++slot) {
      if ((group.slots >> slot & 1) != 0 && turn.Up(replicas[slot])) ++up;
    }
    if (up < group.need) {
      return WithAcks(
          absl::UnavailableError(DescribeMissing(turn, replicas, group) + "; nothing was changed"),
          {0, group.need});
    }
  }
  return absl::OkStatus();
}

void Coordinator::Resume(const Turn& turn, OpId id) {
  WriteOp* op = Find<WriteOp>(id);
  if (op == nullptr) return;  // its deadline passed while it waited
  assert(!op->gather);
  if (!replica_.health().ok()) return FailWrite(turn, id, replica_.health());
  RowTable::Entry* row = nullptr;
  const absl::StatusOr<RecordBytes> base = BaseOf(turn, id, *op, row);
  if (!base.ok()) return FailWrite(turn, id, base.status());
  if (row == nullptr) return;  // it waits for a row
  Record record;
  if (*base != nullptr) {
    absl::StatusOr<Record> decoded = DecodeRecord(**base);
    if (!decoded.ok()) return FailWrite(turn, id, decoded.status());
    record = *std::move(decoded);
  }
  if (const Version* known = FindWrite(record, op->call.write_id)) {
    // A retry of a put that arrived: answer with what it did, once enough replicas have it.
    op->context_after =
        EncodeContext(ContextAfterWrite(record, known->dot, op->context ? &*op->context : nullptr),
                      op->keyspace->id, op->call.key);
    return Store(turn, id, *op, *row, *base);
  }
  const uint64_t far_ahead = CounterOfMillis(turn.now.wall_ms + limits_.drift_ms);
  const bool unproven =
      op->context && ((op->context->has_own && !record.seen.Covers(op->context->own)) ||
                      (op->context->seen.Max() > far_ahead && !record.seen.Covers(op->context->seen)));
  const bool must_read =
      unproven || op->call.retry || (op->is_delete && !op->context) || replica_.filling(op->row_key);
  if (must_read && !op->found.record) {
    const ReplicaSet readers = ReadersOf(turn, *op->keyspace, TokenOf(op->call.key), op->call.strict);
    op->gather.emplace(readers, readers.size() / 2 + 1, op->row_key);
    op->gather->Start(turn, id);
    AlarmAt(turn.now.steady + fetch_latency_.p95(), id);
    return SettleGather(turn, id, *op);
  }
  if (unproven && op->context->seen.Max() > far_ahead) {
    return FailWrite(
        turn, id,
        absl::InvalidArgumentError(
            "context is from the future: no replica has seen what it claims. Read the key again"));
  }
  // Before the actor mints for this row, it must be known whether the row holds all that the actor minted for
  // it.
  replica_.NoticeOwnDots(row->latest, op->found.record);
  if (op->context) replica_.NoticeOwnDots(row->latest, op->context->seen);
  // What this writer wrote before and no quorum knows stays a sibling of what it writes now.
  if (unproven) op->context->has_own = false;
  ChangeRow(turn, id, *op, *row, std::move(record));
}

// What the write builds on, and the row that it changes; without the row (and a meaning) while one must be
// read first. A fallback mints on all its hints of the key, or its vector would claim what only another hint
// holds.
absl::StatusOr<RecordBytes> Coordinator::BaseOf(const Turn& turn, OpId id, WriteOp& op,
                                                RowTable::Entry*& row) {
  RowTable& rows = replica_.rows();
  RowTable::Entry* const own = rows.Find(op.own_key);
  if (own == nullptr) {
    rows.Park(op.own_key, ResumeWrite{id}, turn.out);
    return RecordBytes();
  }
  const bool is_fallback = op.own_key != op.row_key;
  const CutRecord held = is_fallback ? CutRecord{own->latest} : replica_.AtCut(op.row_key, own->latest);
  absl::StatusOr<CutRecord> base = MergeAtCuts(held, op.found, op.keyspace->conflict);
  for (int slot = 0; slot < op.replicas.size() && is_fallback && base.ok(); ++slot) {
    const std::string hint_key = MakeHintKey(op.replicas.primary(slot).value, op.row_key);
    const RowTable::Entry* const hint = rows.Find(hint_key);
    if (hint == nullptr) {
      rows.Park(hint_key, ResumeWrite{id}, turn.out);
      return RecordBytes();
    }
    base = MergeAtCuts(*base, {hint->latest}, op.keyspace->conflict);
  }
  if (!base.ok()) return base.status();
  row = own;
  return Collected(base->record, replica_.cuts().all);
}

void Coordinator::SettleGather(const Turn& turn, OpId id, WriteOp& op) {
  if (op.gather->fanout().verdict() == Verdict::kPending) return;
  if (op.gather->fanout().verdict() == Verdict::kLost) {
    const Fanout& fanout = op.gather->fanout();
    const int need = fanout.quorum().need();
    return FailWrite(turn, id,
                     WithAcks(absl::UnavailableError("the read before the write failed: " +
                                                     DescribeMissing(turn, fanout.replicas(), need) +
                                                     "; nothing was changed"),
                              {fanout.quorum().acks(), need}));
  }
  absl::StatusOr<CutRecord> found = op.gather->Merged(op.keyspace->conflict);
  if (!found.ok()) return FailWrite(turn, id, found.status());
  op.found = *std::move(found);
  if (op.found.record == nullptr) op.found.record = EmptyRecord();
  op.gather.reset();
  if (op.is_delete && !op.context) {
    absl::StatusOr<Record> seen = DecodeRecord(*op.found.record);
    if (!seen.ok()) return FailWrite(turn, id, seen.status());
    op.context = CausalContext{.seen = std::move(seen->seen)};
  }
  Resume(turn, id);
}

void Coordinator::ChangeRow(const Turn& turn, OpId id, WriteOp& op, RowTable::Entry& row, Record record) {
  const CausalContext* context = op.context ? &*op.context : nullptr;
  const uint64_t floor =
      std::max({record.seen.Max(), context ? context->seen.Max() : 0, replica_.mint_floor()});
  if (floor >= kCounterMax) {
    return FailWrite(turn, id,
                     absl::FailedPreconditionError("the key holds a write with the last counter there is, "
                                                   "so that nothing can come after it; nothing was changed"));
  }
  if (!replica_.cuts().known) return waiting_for_clock_.push_back(id);
  bool forced = false;
  const std::optional<Dot> dot = replica_.clock().Mint(turn.now.wall_ms, floor, limits_.drift_ms, &forced);
  replica_.PersistClock(turn, dot ? 0 : floor);
  if (!dot) return waiting_for_clock_.push_back(id);
  const size_t siblings_before = record.versions.size();
  const size_t bytes_before = row.latest ? row.latest->size() : 0;
  if (op.is_delete) {
    ApplyDelete(record, *dot, *context, op.keyspace->conflict);
  } else {
    ApplyPut(record,
             {.dot = *dot,
              .write_id = op.call.write_id,
              .retried = op.call.retry,
              .expires_ms = op.expires_ms,
              .value = std::move(op.call.value)},
             context, op.keyspace->conflict);
  }
  const size_t siblings = record.versions.size();
  if (siblings > limits_.siblings && siblings > siblings_before) {
    return FailWrite(turn, id,
                     absl::ResourceExhaustedError(
                         "the key has " + std::to_string(siblings_before) +
                         " siblings, the limit (limits.siblings); read it and write with its context"));
  }
  auto bytes = std::make_shared<const std::string>(EncodeRecord(record));
  if (bytes->size() > limits_.record_bytes && bytes->size() > bytes_before) {
    return FailWrite(turn, id,
                     absl::ResourceExhaustedError(
                         "all siblings of the key together would have " + std::to_string(bytes->size()) +
                         " bytes, over the limit (limits.record_bytes); read it and write with its context"));
  }
  if (op.own_key != op.row_key && !replica_.HintFits(op.own_key, row, bytes)) {
    return FailWrite(turn, id,
                     absl::ResourceExhaustedError(
                         "no replica of the key can be reached, and the node in their place holds all the "
                         "hints that it may (limits.hint_bytes); nothing was changed"));
  }
  op.context_after = EncodeContext(ContextAfterWrite(record, *dot, context), op.keyspace->id, op.call.key);
  Store(turn, id, op, row, std::move(bytes));
}

// From here on the write may take effect whatever happens.
void Coordinator::Store(const Turn& turn, OpId id, WriteOp& op, RowTable::Entry& row, RecordBytes record) {
  if (op.own_key != op.row_key && OldestCounter(*record) <= replica_.cuts().promised) {
    return FailWrite(
        turn, id,
        absl::UnavailableError("no replica of the key can be reached, and the key holds a value too "
                               "old for another node to keep; nothing was changed. Try again"));
  }
  op.quorum = Quorum(op.replicas.size(), op.need, op.need_other);
  op.record = record;
  replica_.Commit(turn, turn.self, id, op.own_key, row, record);
  for (int slot = 0; slot < op.replicas.size(); ++slot) {
    if (op.replicas[slot] != turn.self) SendTo(turn, id, op, slot);
  }
  SettleWrite(turn, id, op);
}

void Coordinator::SendTo(const Turn& turn, OpId id, WriteOp& op, int slot) {
  if (!turn.Up(op.replicas[slot])) {
    op.quorum.No(slot);
    return;
  }
  turn.Send(op.replicas[slot], id,
            peer::StoreRow{.row_key = op.row_key,
                           .record = op.record,
                           .cut = op.own_key == op.row_key ? replica_.read_cut(op.row_key) : 0,
                           .hint_for = op.replicas.hint_for(slot)});
}

void Coordinator::StoreReply(const Turn& turn, NodeId from, OpId id, absl::StatusCode code) {
  WriteOp* op = Find<WriteOp>(id);
  if (op == nullptr || op->quorum.replicas() == 0) return;
  const int slot = op->replicas.SlotOf(from);
  if (slot < 0) return;
  if (code == absl::StatusCode::kOk) {
    op->quorum.Yes(slot);
  } else if (code == kWrongLayout && !op->replied) {
    op->to_resend = static_cast<Quorum::Slots>(op->to_resend | 1u << slot);
    return;  // the layout that it speaks of is on its way
  } else {
    op->quorum.No(slot);
  }
  SettleWrite(turn, id, *op);
}

void Coordinator::SettleWrite(const Turn& turn, OpId id, WriteOp& op) {
  if (op.quorum.verdict() == Verdict::kPending) return;
  if (!op.replied) {
    if (op.quorum.verdict() == Verdict::kMet) {
      int fallbacks = 0;
      for (int slot = 0; slot < op.replicas.size(); ++slot) {
        if (op.replicas.hint_for(slot) && op.quorum.SaidYes(slot)) ++fallbacks;
      }
      Reply(turn, op.origin,
            {.result = WriteResult{.context = std::move(op.context_after),
                                   .acks = op.quorum.acks(),
                                   .fallbacks = fallbacks,
                                   .is_delete = op.is_delete}});
    } else {
      Fail(turn, op.origin, WriteLost(op.quorum));
    }
    op.replied = true;
    ++lingering_;
    while (!lingerers_.empty() && !ops_.contains(lingerers_.front())) lingerers_.pop_front();
    if (!op.quorum.all_answered()) lingerers_.push_back(id);
  }
  if (op.quorum.all_answered() || draining_) return EndWrite(turn, id);
  while (lingering_ > kLingeringMax) {
    const OpId oldest = lingerers_.front();
    lingerers_.pop_front();
    if (Find<WriteOp>(oldest) != nullptr) EndWrite(turn, oldest);
  }
}

// Each replica that did not confirm is owed a hint, whatever the reason: the row that a primary has, or from
// a fallback the record.
void Coordinator::EndWrite(const Turn& turn, OpId id) {
  const WriteOp& op = *Find<WriteOp>(id);
  const bool primary = op.own_key == op.row_key;
  for (int slot = 0; slot < op.quorum.replicas(); ++slot) {
    const NodeId owed = op.replicas.primary(slot);
    if (op.quorum.SaidYes(slot) || owed == turn.self) continue;
    replica_.Owe(turn, owed, op.row_key, primary ? EmptyRecord() : op.record);
  }
  if (op.replied) --lingering_;
  ops_.erase(id);
}

void Coordinator::Drain(const Turn& turn) {
  draining_ = true;
  for (const OpId id : std::exchange(lingerers_, {})) {
    if (Find<WriteOp>(id) != nullptr) EndWrite(turn, id);
  }
}

void Coordinator::RowUnreadable(const Turn& turn, OpId id, const absl::Status& status) {
  FailWrite(turn, id,
            absl::UnavailableError("the coordinator cannot read its copy of the key: " +
                                   std::string(status.message()) + "; nothing was changed"));
}

void Coordinator::FailWrite(const Turn& turn, OpId id, absl::Status status) {
  if (const WriteOp* op = Find<WriteOp>(id)) {
    Fail(turn, op->origin, std::move(status));
    ops_.erase(id);
  }
}

void Coordinator::ClockAdvanced(const Turn& turn) {
  for (const OpId id : std::exchange(waiting_for_clock_, {})) Resume(turn, id);
}

}  // namespace gyre
