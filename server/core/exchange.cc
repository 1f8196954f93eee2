// Anti-entropy between two replicas: rounds, ranges and their sums. Rows: exchange_rows.cc.
#include "server/core/exchange.h"

#include <algorithm>
#include <utility>

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
  if (!round_ && turn.view() != nullptr && turn.now.steady >= round_at_) BeginRound(turn);
}

std::optional<Micros> Exchange::next_deadline() const {
  if (work_) return work_->look_at ? *work_->look_at : work_->rows_at ? *work_->rows_at : work_->patience;
  if (round_) return std::nullopt;
  return round_at_;
}

// All that this node shares with members above it.
void Exchange::BeginRound(const Turn& turn) {
  round_ = true;
  proves_ = filling_ || turn.layouts.moving() ? 0 : confirmed_;
  soon_ = false;
  tasks_.clear();
  for (Waiting& w : waiting_) ++w.rounds;
  shared_.clear();
  const std::shared_ptr<const View>& view = turn.reads();
  const int self = view->ring.IndexOf(turn.self);
  for (const KeyspaceSpec& keyspace : view->layout.keyspaces) {
    for (const ReplicaRange& range : ranges_.Of(view, keyspace.n)) {
      if (std::find(range.members.begin(), range.members.end(), self) == range.members.end()) continue;
      for (const MemberIndex member : range.members) {
        const Task task = {view->ring.members()[member].id, keyspace.id, range};
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
  if (!work_) NextTask(turn);  // else the errand under way does
}

void Exchange::NextTask(const Turn& turn) {
  while (!errands_.empty()) {
    const Task task = errands_.front();
    errands_.pop_front();
    if (turn.Up(task.peer)) return Begin(turn, task);
    errand_ends_.push_back({task.errand, false});
  }
  if (!round_) return;
  while (!tasks_.empty()) {
    const Task task = tasks_.front();
    tasks_.pop_front();
    if (!turn.Up(task.peer)) {  // it stays as the last comparison found it
      proves_ = 0;
      continue;
    }
    return Begin(turn, task);
  }
  EndRound(turn);
}

void Exchange::Begin(const Turn& turn, const Task& task) {
  work_.emplace(Work{.task = task});
  work_->frontier.push_back({task.keyspace, task.range.begin, task.range.end});
  NextQuestion(turn);
}

void Exchange::Ask(const Turn& turn, Errand errand) {
  errands_.push_back({errand.peer, errand.keyspace, errand.range, errand.id, errand.give_only});
  if (!work_) NextTask(turn);
}

void Exchange::CancelErrands(bool give_only) {
  std::erase_if(errands_, [&](const Task& task) { return task.give_only == give_only; });
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
  // What an errand gives away nobody writes any more: a second look would see the same.
  const bool looked = work.looks > 0 || work.task.give_only;
  if (!work.suspects.empty() && (!looked || ComparesRowsWithAnother(turn, work.task.peer))) {
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
  // To who gives only, no row comes.
  if (work_ && !work_->leaves.empty() && !work_->look_at && !work_->task.give_only) {
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

// `equal` as found before any row was moved: the next round tells whether the move made them so.
void Exchange::EndTask(const Turn& turn, bool equal) {
  if (work_->task.errand != 0) return EndErrand(turn, work_->succeeded && !work_->skipped);
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

void Exchange::EndErrand(const Turn& turn, bool ok) {
  errand_ends_.push_back({work_->task.errand, ok});
  work_.reset();
  NextTask(turn);
}

// Without a result: the next round compares again.
void Exchange::Abandon(const Turn& turn) {
  if (work_->task.errand != 0) return EndErrand(turn, false);
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
