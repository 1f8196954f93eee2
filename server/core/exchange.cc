// Anti-entropy between two replicas: the initiator's half, and the answers to it.
#include "server/core/exchange.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "storage/format/row_key.h"

namespace gyre {
namespace {

constexpr size_t kSumBytes = 8 + 8 + 16;  // a slice and its sum

// The tokens of (begin, end] as a count, the whole ring as its largest value.
uint64_t WidthOf(const peer::Slice& slice) {
  const uint64_t width = slice.end.value - slice.begin.value;
  return width == 0 ? UINT64_MAX : width;
}

// Cuts at the edges of the tree's nodes, so that sums of whole nodes are compared wherever possible.
void Split(const peer::Slice& slice, int bits, std::deque<peer::Slice>& out) {
  const uint64_t step = uint64_t{1} << bits;
  uint64_t begin = slice.begin.value;
  uint64_t left = WidthOf(slice);
  while (left > 0) {
    const uint64_t to_edge = step - ((begin + 1) & (step - 1));  // tokens up to the node's last one
    const uint64_t take = std::min(left, to_edge == 0 ? step : to_edge);
    out.push_back({slice.keyspace, Token{begin}, Token{begin + take}});
    begin += take;
    left -= take;
  }
}

size_t HashBytes(const std::vector<peer::RowDigest>& rows) {
  size_t bytes = 0;
  for (const peer::RowDigest& row : rows) bytes += row.row_key.size() + 16 + 8;
  return bytes;
}

}  // namespace

void Exchange::Wake(const Turn& turn) {
  if (soon_ && !round_) {
    round_at_ = std::min(round_at_, turn.now.steady + kSoon);
    return;
  }
  soon_ = true;
  round_at_ = turn.now.steady + kSoon;
}

void Exchange::RepairNow(const Turn& turn, const gyre::RepairNow& asked) {
  Wake(turn);
  if (!asked.ticket) return;
  if (waiting_.size() >= kWaitingMax) {
    const absl::Status full =
        absl::ResourceExhaustedError("too many wait for a repair already; it goes on by itself");
    turn.out.replies.push_back({*asked.ticket, {.status = full}});
    return;
  }
  waiting_.push_back({*asked.ticket, asked.deadline});
}

void Exchange::Tick(const Turn& turn) {
  std::erase_if(waiting_, [&](const Waiting& w) {
    if (turn.now.steady < w.deadline) return false;
    const absl::Status late =
        absl::UnavailableError("the comparison with the other replicas has not ended in time; it goes on");
    turn.out.replies.push_back({w.ticket, {.status = late}});
    return true;
  });
  if (work_ && work_->look_at && turn.now.steady >= *work_->look_at) {
    LookAgain(turn);
  } else if (work_ && work_->rows_at) {
    if (turn.now.steady >= *work_->rows_at) AskRows(turn);
  } else if (work_ && !work_->look_at && turn.now.steady >= work_->patience) {
    Abandon(turn);
  }
  if (!round_ && turn.view != nullptr && turn.now.steady >= round_at_) BeginRound(turn);
}

std::optional<Micros> Exchange::next_deadline() const {
  if (work_) return work_->look_at ? *work_->look_at : work_->rows_at ? *work_->rows_at : work_->patience;
  if (round_) return std::nullopt;
  return round_at_;
}

// All that this node shares with members above it.
void Exchange::BeginRound(const Turn& turn) {
  round_ = true;
  proves_ = filling_ ? 0 : confirmed_;
  soon_ = false;
  tasks_.clear();
  for (Waiting& w : waiting_) ++w.rounds;
  shared_.clear();
  const int self = turn.view->ring.IndexOf(turn.self);
  for (const KeyspaceSpec& keyspace : turn.view->layout.keyspaces) {
    for (const ReplicaRange& range : ranges_.Of(turn.view, keyspace.n)) {
      if (std::find(range.members.begin(), range.members.end(), self) == range.members.end()) continue;
      for (const MemberIndex member : range.members) {
        const Task task = {turn.view->ring.members()[member].id, keyspace.id, range};
        if (task.peer == turn.self || (task.peer < turn.self && !filling_)) continue;
        shared_.insert(task.Key());
        tasks_.push_back(task);
      }
    }
  }
  // What is shared no longer is nobody's concern; what was never compared is not known to be equal.
  const auto gone = [&](const TaskKey& key) { return !shared_.contains(key); };
  std::erase_if(unequal_, gone);
  std::erase_if(compared_, gone);
  for (const TaskKey& key : shared_) {
    if (!compared_.contains(key)) unequal_.insert(key);
  }
  NextTask(turn);
}

void Exchange::NextTask(const Turn& turn) {
  while (!tasks_.empty()) {
    const Task task = tasks_.front();
    tasks_.pop_front();
    if (!turn.Up(task.peer)) {  // it stays as the last comparison found it
      proves_ = 0;
      continue;
    }
    work_.emplace(Work{.task = task});
    work_->frontier.push_back({task.keyspace, task.range.begin, task.range.end});
    return NextQuestion(turn);
  }
  EndRound(turn);
}

void Exchange::EndRound(const Turn& turn) {
  round_ = false;
  exchanged_ = std::max(exchanged_, proves_);
  ++counters_.rounds;
  if (filling_ && std::ranges::includes(filled_, shared_)) {
    filling_ = false;
    turn.out.filled = true;
  }
  std::erase_if(waiting_, [&](const Waiting& w) {
    if (w.rounds == 0 || (!unequal_.empty() && w.rounds < kRoundsMax)) return false;
    turn.out.replies.push_back({w.ticket, {}});
    return true;
  });
  if (!waiting_.empty()) soon_ = true;
  round_at_ = turn.now.steady + (soon_ ? kSoon : filling_ ? kFillEvery : kRoundEvery);
}

void Exchange::NextQuestion(const Turn& turn) {
  Work& work = *work_;
  if (!work.frontier.empty()) return AskSums(turn);
  if (!work.suspects.empty() && (work.looks == 0 || ComparesRowsWithAnother(turn, work.task.peer))) {
    return LookLater(turn);
  }
  if (!work.suspects.empty()) {
    work.leaves.assign(work.suspects.begin(), work.suspects.end());
    work.suspects.clear();
  }
  if (!work.leaves.empty()) return AskRows(turn);
  EndTask(turn, !work.moved && !work.skipped);
}

void Exchange::LookLater(const Turn& turn) {
  if (++work_->looks > kLooksMax) {
    work_->succeeded = false;
    return EndTask(turn, false);
  }
  work_->look_at = turn.now.steady + kSecondLook;
}

void Exchange::LookAgain(const Turn& turn) {
  Work& work = *work_;
  if (ComparesRowsWithAnother(turn, work.task.peer)) return LookLater(turn);
  work.look_at.reset();
  if (work.refused) return AskRows(turn);
  work.frontier.assign(work.suspects.begin(), work.suspects.end());
  work.suspects.clear();
  NextQuestion(turn);
}

bool Exchange::ComparesRowsWithAnother(const Turn& turn, NodeId than) const {
  // Only a filling node is asked by whom it asks. Then the lower id goes first.
  if (work_ && !work_->leaves.empty() && !work_->look_at) {
    if (work_->task.peer != than || turn.self < than) return true;
  }
  return rows_with_ != than && turn.now.steady < rows_until_;
}

// Own sums first; with these the peer is asked.
void Exchange::AskSums(const Turn& turn) {
  Work& work = *work_;
  const size_t count = std::min(work.frontier.size(), peer::CompareSums::kSlicesMax);
  work.asked.assign(work.frontier.begin(), work.frontier.begin() + static_cast<ptrdiff_t>(count));
  work.frontier.erase(work.frontier.begin(), work.frontier.begin() + static_cast<ptrdiff_t>(count));
  turn.out.sum_reads.push_back({.asked_by = turn.self, .op = NewOp(turn), .slices = work.asked});
}

void Exchange::SumsRead(const Turn& turn, OpId op, const std::vector<std::optional<RowHash>>& sums) {
  if (!work_ || work_->op != op) return;
  peer::CompareSums question;
  std::vector<peer::Slice> in_doubt;
  for (size_t i = 0; i < sums.size(); ++i) {
    if (!sums[i]) {
      in_doubt.push_back(work_->asked[i]);
      continue;
    }
    question.slices.push_back(work_->asked[i]);
    question.sums.push_back(*sums[i]);
  }
  if (!in_doubt.empty() && !TakeDoubt(turn)) return;
  for (const peer::Slice& slice : in_doubt) Descend(slice);
  if (question.slices.empty()) return NextQuestion(turn);
  work_->asked = question.slices;
  counters_.ranges_compared += question.sums.size();
  counters_.hash_bytes += question.sums.size() * kSumBytes;
  turn.Send(work_->task.peer, NewOp(turn), std::move(question));
}

// A sum in doubt proves nothing, but what is below it may. False when there are too many: the comparison is
// given up.
bool Exchange::TakeDoubt(const Turn& turn) {
  if (++work_->doubtful <= kDoubtfulMax) return true;
  Abandon(turn);
  return false;
}

void Exchange::AnswerSums(const Turn& turn, const gyre::SumsRead& read) const {
  const std::vector<RowHash>& theirs = *read.request.asked;
  peer::CompareSumsReply reply = {.filling = filling_};
  for (size_t i = 0; i < read.sums.size(); ++i) {
    if (!read.sums[i]) reply.in_doubt = true;
    if (!read.sums[i] || *read.sums[i] != theirs[i]) reply.unequal.push_back(static_cast<uint32_t>(i));
  }
  turn.Send(read.request.asked_by, read.request.op, std::move(reply));
}

void Exchange::SumsReply(const Turn& turn, NodeId from, OpId op, const peer::CompareSumsReply& reply) {
  if (!work_ || work_->op != op || work_->task.peer != from) return;
  if (reply.filling) work_->succeeded = false;
  for (const uint32_t index : reply.unequal) {
    if (index >= work_->asked.size()) return Abandon(turn);
  }
  if (reply.in_doubt && !TakeDoubt(turn)) return;
  for (const uint32_t index : reply.unequal) Descend(work_->asked[index]);
  NextQuestion(turn);
}

// Into a slice that is not equal, or not known to be: its parts are compared, or if it is a leaf, its rows.
void Exchange::Descend(const peer::Slice& slice) {
  const uint64_t width = WidthOf(slice);
  if (width <= uint64_t{1} << kLeafBits) {
    work_->suspects.push_back(slice);
    return;
  }
  int bits = kLeafBits;
  while (bits + kFanoutBits < 64 && width > uint64_t{1} << (bits + kFanoutBits)) bits += kFanoutBits;
  Split(slice, bits, work_->frontier);
}

// One page of the first leaf: what lies behind `after`.
void Exchange::AskRows(const Turn& turn) {
  if (disk_is_behind_) return AskRowsLater(turn);
  Work& work = *work_;
  work.rows_at.reset();
  const peer::Slice& leaf = work.leaves.front();
  if (work.end.empty()) {
    // A leaf never wraps but where it begins at the last token, which is before the first.
    const uint64_t first = leaf.begin.value + 1;
    work.after = RowKeyFloor(leaf.keyspace, first);
    work.end = RowKeyCeiling(leaf.keyspace, leaf.end.value);
  }
  turn.out.page_reads.push_back(
      {.asked_by = turn.self,
       .op = NewOp(turn),
       .use = PageRequest::Use::kExchange,
       .page = {work.after, work.end, ScanCall::kRowsMax, peer::FetchPage::kBytesMax}});
}

void Exchange::AskRowsLater(const Turn& turn) { work_->rows_at = turn.now.steady + kDiskPause; }

void Exchange::SkipLeaf(const Turn& turn) {
  work_->skipped = true;
  work_->succeeded = false;
  work_->rows.clear();
  work_->leaves.pop_front();
  work_->after.clear();
  work_->end.clear();
  NextQuestion(turn);
}

void Exchange::PageRead(const Turn& turn, OpId op, peer::FetchPageReply page) {
  if (!work_ || work_->op != op) return;
  if (page.code != absl::StatusCode::kOk) return SkipLeaf(turn);
  Work& work = *work_;
  peer::CompareRows question = {.after = work.after,
                                .end = page.complete ? work.end : page.rows.back().row_key};
  if (!page.complete) question.end.push_back('\0');  // exclusive: just behind the last row
  work.rows = Lasting(std::move(page.rows));
  work.cut = replica_.read_cut();
  for (const Row& row : work.rows) {
    question.rows.push_back({row.row_key, HashRow(row.row_key, *row.record), NewestCounter(*row.record)});
  }
  work.page_end = question.end;
  counters_.records_compared += question.rows.size();
  counters_.hash_bytes += HashBytes(question.rows);
  turn.Send(work.task.peer, NewOp(turn), std::move(question));
}

void Exchange::AnswerRows(const Turn& turn, gyre::PageRead read) {
  const auto& [from, op, use, range, asked] = read.request;
  peer::FetchPageReply& page = read.reply;
  peer::CompareRowsReply reply = {.code = page.code, .covered_to = asked.end, .cut = replica_.read_cut()};
  if (ComparesRowsWithAnother(turn, from)) reply.code = absl::StatusCode::kAborted;
  if (reply.code != absl::StatusCode::kOk) return turn.Send(from, op, std::move(reply));
  rows_with_ = from;
  rows_until_ = turn.now.steady + kRowsArrive;
  if (!page.complete) reply.covered_to = page.rows.back().row_key + '\0';
  page.rows = Lasting(std::move(page.rows));
  const auto offer = [&](const Row& row) {
    ++counters_.records_sent;
    counters_.bytes_sent += row.record->size();
    reply.rows.push_back(row);
  };
  auto theirs = asked.rows.begin();
  const auto want_before = [&](const std::string& row_key) {
    for (; theirs != asked.rows.end() && theirs->row_key < row_key; ++theirs)
      reply.wanted.push_back(theirs->row_key);
  };
  for (const Row& row : page.rows) {
    want_before(row.row_key);
    if (theirs == asked.rows.end() || theirs->row_key != row.row_key) {
      offer(row);
      continue;
    }
    if (theirs->hash != HashRow(row.row_key, *row.record)) {
      if (NewestCounter(*row.record) >= theirs->newest) {
        offer(row);
      } else {
        reply.wanted.push_back(row.row_key);
      }
    }
    ++theirs;
  }
  want_before(reply.covered_to);
  turn.Send(from, op, std::move(reply));
}

void Exchange::RowsReply(const Turn& turn, NodeId from, OpId op, const peer::CompareRowsReply& reply) {
  if (!work_ || work_->op != op || work_->task.peer != from) return;
  Work& work = *work_;
  if (reply.code == absl::StatusCode::kAborted) {
    work.refused = true;
    return LookLater(turn);
  }
  if (reply.code == absl::StatusCode::kResourceExhausted) return AskRowsLater(turn);
  if (reply.code != absl::StatusCode::kOk) return SkipLeaf(turn);
  if (reply.covered_to <= work.after || reply.covered_to > work.page_end) return Abandon(turn);
  auto row = work.rows.begin();
  for (const std::string& wanted : reply.wanted) {
    row = std::find_if(row, work.rows.end(), [&](const Row& r) { return r.row_key == wanted; });
    if (row == work.rows.end()) return Abandon(turn);
    SendRow(turn, from, row->row_key, {row->record, work.cut});
  }
  auto own = work.rows.begin();
  for (const Row& theirs : reply.rows) {
    if (theirs.row_key <= work.after || theirs.row_key >= reply.covered_to || theirs.record == nullptr) {
      return Abandon(turn);
    }
    own = std::find_if(own, work.rows.end(), [&](const Row& r) { return r.row_key >= theirs.row_key; });
    const bool both = own != work.rows.end() && own->row_key == theirs.row_key;
    TakeRow(turn, both ? &*own : nullptr, theirs, reply.cut);
  }
  work.moved = true;
  work.rows.clear();
  work.covered_to = reply.covered_to;
  if (work.unconfirmed.empty()) EndPage(turn);
}

// Rows that no stable cut lets go, as they are without what it does.
std::vector<Row> Exchange::Lasting(std::vector<Row> rows) const {
  for (Row& row : rows) row.record = Collected(row.record, replica_.cuts().all);
  std::erase_if(rows, [](const Row& row) { return row.record == nullptr; });
  return rows;
}

// This node takes a row of the peer as any replica takes one, and the peer what the merge holds beyond it.
void Exchange::TakeRow(const Turn& turn, const Row* own, const Row& row, uint64_t cut) {
  RowKeyParts parts;
  ParseRowKey(row.row_key, parts);
  const KeyspaceSpec* const keyspace = turn.view->Keyspace(parts.keyspace);
  const CutRecord theirs = {row.record, cut};
  const absl::StatusOr<CutRecord> merged =
      MergeAtCuts({own ? own->record : nullptr, work_->cut}, theirs,
                  keyspace ? keyspace->conflict : ConflictRule::kSiblings);
  if (!merged.ok()) {
    work_->succeeded = false;
    return;
  }
  const OpId op = NewOp(turn);
  work_->unconfirmed.insert({op, turn.self});
  turn.Send(turn.self, op,
            peer::StoreRow{.row_key = row.row_key, .record = row.record, .cut = cut, .repair = true});
  if (merged->record == nullptr || *merged->record != *row.record) {
    SendRow(turn, work_->task.peer, row.row_key,
            {merged->record ? merged->record : EmptyRecord(), merged->cut});
  }
}

void Exchange::StoreReply(const Turn& turn, NodeId from, OpId op, const peer::StoreReply& reply) {
  if (!work_ || work_->unconfirmed.erase({op, from}) == 0) return;
  if (reply.code != absl::StatusCode::kOk || reply.more) work_->succeeded = false;
  if (work_->unconfirmed.empty() && !work_->covered_to.empty()) EndPage(turn);
}

void Exchange::EndPage(const Turn& turn) {
  Work& work = *work_;
  rows_with_ = work.task.peer;
  rows_until_ = turn.now.steady + kRowsArrive;
  const bool leaf_done = work.covered_to == work.end;
  if (leaf_done) work.leaves.pop_front();
  if (std::exchange(work.refused, false)) {
    // The peer may have got from the other what this one has: only what is still unequal is compared.
    work.frontier.assign(work.leaves.begin(), work.leaves.end());
    work.leaves.clear();
  }
  if (leaf_done || work.leaves.empty()) {
    work.after.clear();
    work.end.clear();
  } else {
    work.after = work.covered_to;
    work.after.pop_back();  // exclusive, at the last row
  }
  work.covered_to.clear();
  NextQuestion(turn);
}

void Exchange::SendRow(const Turn& turn, NodeId to, const std::string& row_key, const CutRecord& record) {
  ++counters_.records_sent;
  counters_.bytes_sent += record.record->size();
  const OpId op = NewOp(turn);
  work_->unconfirmed.insert({op, to});
  turn.Send(to, op,
            peer::StoreRow{.row_key = row_key,
                           .record = record.record,
                           .cut = record.cut,
                           .repair = true,
                           .return_more = true});
}

// `equal` as found before any row was moved: the next round tells whether the move made them so.
void Exchange::EndTask(const Turn& turn, bool equal) {
  const auto key = work_->task.Key();
  if (!work_->succeeded) proves_ = 0;
  compared_.insert(key);
  if (equal) {
    unequal_.erase(key);
    if (filling_) filled_.insert(key);
  } else {
    unequal_.insert(key);
    if (!work_->skipped) soon_ = true;  // what cannot be read will not be readable soon
  }
  work_.reset();
  NextTask(turn);
}

// Without a result: the next round compares again.
void Exchange::Abandon(const Turn& turn) {
  proves_ = 0;
  unequal_.insert(work_->task.Key());
  work_.reset();
  NextTask(turn);
}

void Exchange::PeerLost(const Turn& turn, NodeId node) {
  if (work_ && work_->task.peer == node) Abandon(turn);
}

OpId Exchange::NewOp(const Turn& turn) {
  work_->op = next_op_++;
  work_->patience = turn.now.steady + kPatience;
  return work_->op;
}

}  // namespace gyre
