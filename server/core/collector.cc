// Collection of what a stable cut lets go.
#include "server/core/collector.h"

#include <utility>

#include "storage/format/row_key.h"

namespace gyre {

void Collector::Tick(const Turn& turn) {
  if (page_op_ != 0 || turn.view() == nullptr || turn.now.steady < next_at_) return;
  if (target_ == 0) {
    if (std::exchange(missed_, false)) {
      done_to_ = done_before_;
      next_at_ = turn.now.steady + kMissedAgainAfter;
      return;
    }
    if (!due()) return;
    target_ = replica_.cuts().all;
    keyspaces_.clear();
    for (const KeyspaceSpec& keyspace : turn.view()->layout.keyspaces) keyspaces_.push_back(keyspace.id);
    NextKeyspace(turn);
  }
  if (keyspaces_.empty()) {
    done_before_ = std::exchange(done_to_, std::exchange(target_, 0));
    return;
  }
  page_op_ = next_op_++;
  turn.out.page_reads.push_back({.asked_by = turn.self,
                                 .op = page_op_,
                                 .use = PageRequest::Use::kCollect,
                                 .page = {after_, CollectKeyFloor(keyspaces_.back(), target_ + 1), kPageRows,
                                          peer::FetchPage::kBytesMax}});
}

void Collector::NextKeyspace(const Turn& turn) {
  next_at_ = turn.now.steady;
  if (!keyspaces_.empty()) after_ = CollectKeyFloor(keyspaces_.back(), done_before_);
}

void Collector::PageRead(const Turn& turn, OpId op, const peer::FetchPageReply& page) {
  if (op != page_op_) return;
  page_op_ = 0;
  if (page.code != absl::StatusCode::kOk) {
    next_at_ = turn.now.steady + kRetryAfter;
    return;
  }
  for (const Row& row : page.rows) {
    std::string_view row_key;
    if (!ParseCollectKey(row.row_key, row_key)) continue;
    const OpId collected = next_op_++;
    rows_[collected] = {std::string(row_key), row.row_key};
    Resume(turn, collected);
  }
  if (target_ == 0) return;  // it starts over
  next_at_ = turn.now.steady + kPagesApart;
  if (!page.complete) {
    after_ = page.rows.back().row_key;
    return;
  }
  keyspaces_.pop_back();
  NextKeyspace(turn);
}

std::optional<Micros> Collector::next_deadline() const {
  if (page_op_ != 0 || (target_ == 0 && !missed_ && !due())) return std::nullopt;
  return next_at_;
}

void Collector::RowUnreadable(OpId op) {
  missed_ = true;
  rows_.erase(op);
}

void Collector::Resume(const Turn& turn, OpId op) {
  const auto found = rows_.find(op);
  if (found == rows_.end()) return;
  const Due& due = found->second;
  RowTable::Entry* const row = replica_.rows().Find(due.row_key);
  if (row == nullptr) return replica_.rows().Park(due.row_key, ResumeCollect{op}, turn.out);
  const RecordBytes lasts = Collected(row->latest, replica_.cuts().all);
  if (lasts != row->latest) {
    replica_.Commit(turn, NodeId{}, 0, due.row_key, *row, lasts);
  } else if (row->commits_pending > 0) {
    missed_ = true;
  } else {
    // Left by a batch that failed and turned up all the same, before the one that made the row what it is.
    turn.out.stale.push_back(due.collect_key);
  }
  rows_.erase(found);
}

}  // namespace gyre
