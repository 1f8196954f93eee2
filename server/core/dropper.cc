// Rows that no layout gives this node leave its disk.
#include "server/core/dropper.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "storage/format/row_key.h"

namespace gyre {
namespace {

constexpr uint64_t kLastToken = std::numeric_limits<uint64_t>::max();

// The part of a range of the ring, which may wrap, that holds `token`, without a wrap.
TokenRange PieceOf(const TokenRange& range, uint64_t token) {
  if (range.whole()) return kWholeRing;
  if (range.begin < range.end || range.begin.value == kLastToken) return range;
  return token <= range.end.value ? TokenRange{Token{kLastToken}, range.end}
                                  : TokenRange{range.begin, Token{kLastToken}};
}

const ReplicaRange& RangeOf(const std::vector<ReplicaRange>& ranges, uint64_t token) {
  const auto found =
      std::ranges::find_if(ranges, [&](const ReplicaRange& r) { return r.Contains(Token{token}); });
  return found == ranges.end() ? ranges.front() : *found;
}

}  // namespace

void Dropper::LayoutsChanged(const Turn& turn) {
  clear_.clear();
  keyspaces_.clear();
  walked_to_.clear();
  leftover_.reset();
  page_op_ = 0;
  rows_.clear();
  failed_ = false;
  errands_.clear();
  exchange_.CancelErrands(/*give_only=*/true);
  replica_.SetDropping(false);
  done_ = turn.layouts.moving();
  if (done_) return;
  for (const KeyspaceSpec& keyspace : turn.view()->layout.keyspaces) keyspaces_.push_back(keyspace.id);
  Later(turn, kGrace);
}

void Dropper::Clear(const Turn& turn, std::vector<KeySpan> spans) {
  clear_ = std::move(spans);
  Later(turn, Micros{});
}

void Dropper::Tick(const Turn& turn) {
  if (page_op_ != 0 || !rows_.empty() || !errands_.empty() || turn.now.steady < next_at_) return;
  if (turn.view() == nullptr || replica_.disk_is_behind() || !replica_.health().ok()) return;
  if (!clear_.empty()) return ReadPage(turn, clear_.back().begin, clear_.back().end, kPageRows);
  if (done_) return;
  if (leftover_) {
    if (!leftover_->erasing) return Offer(turn);
    return ReadPage(turn, leftover_->span.begin, leftover_->span.end, kPageRows);
  }
  while (!keyspaces_.empty()) {
    const uint32_t keyspace = keyspaces_.back();
    if (walked_to_.empty()) walked_to_ = RowKeyFloor(keyspace, 0);
    const std::string end = RowKeyCeiling(keyspace, kLastToken);
    if (walked_to_ < end && turn.view()->Keyspace(keyspace) != nullptr)
      return ReadPage(turn, walked_to_, end, 1);
    keyspaces_.pop_back();
    walked_to_.clear();
  }
  done_ = true;
}

std::optional<Micros> Dropper::next_deadline() const {
  if (page_op_ != 0 || !rows_.empty() || !errands_.empty() || (clear_.empty() && done_)) return std::nullopt;
  return next_at_;
}

void Dropper::ReadPage(const Turn& turn, const std::string& begin, const std::string& end, uint32_t rows) {
  page_op_ = next_op_++;
  turn.out.page_reads.push_back(
      {.asked_by = turn.self,
       .op = page_op_,
       .use = PageRequest::Use::kDrop,
       .page = {begin, end, rows, peer::FetchPage::kBytesMax, /*skip_damage=*/true}});
}

void Dropper::PageRead(const Turn& turn, OpId op, const peer::FetchPageReply& page) {
  if (op != page_op_) return;
  page_op_ = 0;
  if (page.code != absl::StatusCode::kOk) return Later(turn, kRetryAfter);
  Later(turn, Micros{});
  if (!clear_.empty() || (leftover_ && leftover_->erasing)) return Erase(turn, page);
  Walk(turn, page);
}

// `page` holds the first row that was not walked over yet: the range that it lies in is this node's, or too
// much.
void Dropper::Walk(const Turn& turn, const peer::FetchPageReply& page) {
  const KeyspaceSpec* const keyspace = turn.view()->Keyspace(keyspaces_.back());
  if (page.rows.empty() || keyspace == nullptr) {
    keyspaces_.pop_back();
    walked_to_.clear();
    return;
  }
  RowKeyParts parts;
  ParseRowKey(page.rows.front().row_key, parts);
  const ReplicaRange& range = RangeOf(ranges_.Of(turn.view(), keyspace->n), parts.token);
  const TokenRange piece = PieceOf(range, parts.token);
  const KeySpan span = SpansOf(keyspace->id, piece).front();
  const int self = turn.view()->ring.IndexOf(turn.self);
  if (self >= 0 && std::ranges::find(range.members, static_cast<MemberIndex>(self)) != range.members.end()) {
    walked_to_ = span.end;
    return;
  }
  leftover_ = Leftover{keyspace->id, piece, span, {}, false};
  // What a newcomer fetched for a layout that was gone back from, others have; and it has no links to them
  // any more.
  if (self < 0 && turn.view()->layout.abort) return;
  for (const MemberIndex member : range.members)
    leftover_->to_ask.insert(turn.view()->ring.members()[member].id);
}

void Dropper::Offer(const Turn& turn) {
  if (leftover_->to_ask.empty()) {
    // What it minted of these rows it will not know any more.
    replica_.clock().Retire();
    replica_.SetDropping(true);
    leftover_->erasing = true;
    return;
  }
  Later(turn, kRetryAfter);
  for (const NodeId node : leftover_->to_ask) {
    if (!turn.Up(node)) continue;
    const OpId id = next_op_++;
    errands_[id] = node;
    exchange_.Ask(turn, {id, node, leftover_->keyspace, leftover_->range, /*give_only=*/true});
  }
}

void Dropper::ErrandEnded(const Turn& turn, OpId id, bool ok) {
  const auto errand = errands_.find(id);
  if (errand == errands_.end()) return;
  if (ok && leftover_) {
    leftover_->to_ask.erase(errand->second);
    if (leftover_->to_ask.empty()) Later(turn, Micros{});
  }
  errands_.erase(errand);
}

void Dropper::Erase(const Turn& turn, const peer::FetchPageReply& page) {
  if (page.rows.empty() && page.complete) return SpanErased(turn);
  std::vector<OpId> begun;
  for (const Row& row : page.rows) {
    begun.push_back(next_op_);
    rows_[next_op_++] = row.row_key;
  }
  for (const OpId op : begun) Resume(turn, op);
  Later(turn, kPagesApart);
}

void Dropper::Resume(const Turn& turn, OpId op) {
  const auto found = rows_.find(op);
  if (found == rows_.end()) return;
  RowTable::Entry* const row = replica_.rows().Find(found->second);
  if (row == nullptr) return replica_.rows().Park(found->second, ResumeDrop{op}, turn.out);
  ++rows_dropped_;
  replica_.Commit(turn, turn.self, op, found->second, *row, nullptr);
}

void Dropper::RowUnreadable(OpId op) { rows_.erase(op); }

void Dropper::Confirmed(const Turn& turn, OpId op, absl::StatusCode code) {
  if (rows_.erase(op) == 0) return;
  failed_ = failed_ || code != absl::StatusCode::kOk;
  if (rows_.empty() && std::exchange(failed_, false)) Later(turn, kRetryAfter);
}

void Dropper::SpanErased(const Turn&) {
  if (!clear_.empty()) {
    clear_.pop_back();
    return;
  }
  walked_to_ = leftover_->span.end;
  leftover_.reset();
}

}  // namespace gyre
