// Anti-entropy, where leaves differ: their rows are compared, and what one side lacks is moved and confirmed.
#include <algorithm>
#include <utility>

#include "server/core/exchange.h"
#include "storage/format/row_key.h"

namespace gyre {
namespace {

size_t HashBytes(const std::vector<peer::RowDigest>& rows) {
  size_t bytes = 0;
  for (const peer::RowDigest& row : rows) bytes += row.row_key.size() + 16 + 8;
  return bytes;
}

}  // namespace

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
  // Rows that no layout gives this node any more say nothing of what they lack.
  work.cut = work.task.give_only ? 0 : replica_.read_cut(work.after, work.end);
  for (const Row& row : work.rows) {
    question.rows.push_back({row.row_key, HashRow(row.row_key, *row.record), NewestCounter(*row.record)});
  }
  question.give_only = work.task.give_only;
  work.page_end = question.end;
  counters_.records_compared += question.rows.size();
  counters_.hash_bytes += HashBytes(question.rows);
  turn.Send(work.task.peer, NewOp(turn), std::move(question));
}

void Exchange::AnswerRows(const Turn& turn, gyre::PageRead read) {
  const auto& [from, op, use, range, asked] = read.request;
  peer::FetchPageReply& page = read.reply;
  peer::CompareRowsReply reply = {
      .code = page.code, .covered_to = asked.end, .cut = replica_.read_cut(asked.after, asked.end)};
  if (ComparesRowsWithAnother(turn, from)) reply.code = absl::StatusCode::kAborted;
  if (reply.code != absl::StatusCode::kOk) return turn.Send(from, op, std::move(reply));
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
      if (!asked.give_only) offer(row);
      continue;
    }
    if (theirs->hash != HashRow(row.row_key, *row.record)) {
      if (!asked.give_only && NewestCounter(*row.record) >= theirs->newest) {
        offer(row);
      } else {
        reply.wanted.push_back(row.row_key);
      }
    }
    ++theirs;
  }
  want_before(reply.covered_to);
  if (!asked.give_only || !reply.wanted.empty()) {
    rows_with_ = from;
    rows_until_ = turn.now.steady + kRowsArrive;
  }
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
  // Between `after` and itself with a zero byte no key lies: that would be asked again for ever.
  if (reply.covered_to <= work.after + '\0' || reply.covered_to > work.page_end) return Abandon(turn);
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
  const KeyspaceSpec* const keyspace = turn.view()->Keyspace(parts.keyspace);
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
  // What is given away is with the receiver, or superseded there, or of before its stable cut and so no news.
  const bool given = work_->task.give_only &&
                     (reply.code == absl::StatusCode::kOk || reply.code == absl::StatusCode::kOutOfRange);
  if (!given && (reply.code != absl::StatusCode::kOk || reply.more)) work_->succeeded = false;
  if (work_->unconfirmed.empty() && !work_->covered_to.empty()) EndPage(turn);
}

void Exchange::EndPage(const Turn& turn) {
  Work& work = *work_;
  if (!work.task.give_only) {
    rows_with_ = work.task.peer;
    rows_until_ = turn.now.steady + kRowsArrive;
  }
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
                           .return_more = !work_->task.give_only});
}

}  // namespace gyre
