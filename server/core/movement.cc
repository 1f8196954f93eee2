// Movement: what this node fetches, from whom, and what it does when that fails.
#include "server/core/movement.h"

#include <algorithm>
#include <utility>

namespace gyre {
namespace {

uint64_t BytesOf(const Row& row) { return row.row_key.size() + row.record->size(); }

bool Has(const std::vector<NodeId>& nodes, NodeId node) {
  return std::ranges::find(nodes, node) != nodes.end();
}

}  // namespace

Movement::Movement(Replica& replica, Exchange& exchange, Dropper& dropper, MoveState state)
    : replica_(replica), exchange_(exchange), dropper_(dropper), state_(std::move(state)) {}

// Also when only what the others have done is news.
void Movement::LayoutsChanged(const Turn& turn) {
  const Layouts& layouts = turn.layouts;
  can_fetch_ = layouts.moving() && layouts.all_acked;
  next_at_ = {};
  const View& view = *layouts.view;
  if (!layouts.moving()) {
    tasks_.clear();
    StartOver(turn, Micros{});
    ready_ = synced_ = true;
    replica_.SetGaining({}, true);
    return;
  }
  if (state_.fence == view.layout.fence && !tasks_.empty()) return;  // it goes on
  tasks_ = MoveTasksOf(layouts, turn.self);
  StartOver(turn, Micros{});
  const bool known = state_.fence == view.layout.fence && state_.digest == view.digest &&
                     state_.progress.size() == tasks_.size();
  ready_ = known && state_.ready;
  synced_ = synced_on_its_way_ = ready_on_its_way_ = false;
  if (!known) {
    state_.fence = view.layout.fence;
    state_.digest = view.digest;
    state_.ready = false;
    state_.progress.assign(tasks_.size(), {});
  }
  for (size_t i = 0; i < tasks_.size(); ++i) {
    tasks_[i].progress = state_.progress[i];
    // Who stays has rows of its own: it compares.
    if (tasks_[i].stays) tasks_[i].progress.fetched = tasks_[i].progress.mixed = true;
  }
  synced_ = ready_ && !tasks_.empty() && current() == nullptr;
  if (!ready_) {
    std::vector<KeySpan> spans;
    for (const MoveTask& task : tasks_) {
      if (!task.stays) spans.push_back(task.span);
    }
    dropper_.Clear(turn, std::move(spans));
  }
  Gain();
  Settle(turn);
}

// Where this node fills.
void Movement::Gain() {
  std::vector<KeySpan> spans;
  for (const MoveTask& task : tasks_) {
    if (!task.stays && !synced_) spans.push_back(task.span);
  }
  replica_.SetGaining(KeySpans(std::move(spans)), ready_);
}

const MoveTask* Movement::current() const {
  const auto found = std::ranges::find_if(tasks_, [](const MoveTask& task) { return !task.progress.done; });
  return found == tasks_.end() ? nullptr : &*found;
}
MoveTask* Movement::current() { return const_cast<MoveTask*>(std::as_const(*this).current()); }

void Movement::Persist(const Turn& turn) {
  for (size_t i = 0; i < tasks_.size(); ++i) state_.progress[i] = tasks_[i].progress;
  turn.out.moves = EncodeMoveState(state_);
}

void Movement::Committed(const Turn& turn, bool ok) {
  if (!ok) {
    if (ready_on_its_way_ || synced_on_its_way_) Persist(turn);
    return;
  }
  if (std::exchange(ready_on_its_way_, false)) {
    ready_ = true;
    Gain();
  }
  if (std::exchange(synced_on_its_way_, false)) {
    synced_ = true;
    Gain();
  }
}

// What may have become true: that it is ready, that it has all.
void Movement::Settle(const Turn& turn) {
  if (!ready_ && !ready_on_its_way_ && dropper_.cleared()) {
    state_.ready = ready_on_its_way_ = true;
    Persist(turn);
  }
  if (ready_ && can_fetch_ && current() == nullptr && !synced_ && !synced_on_its_way_) {
    synced_on_its_way_ = true;
    Persist(turn);
  }
}

void Movement::Tick(const Turn& turn) {
  if (turn.view() == nullptr || !turn.layouts.moving()) return;
  Settle(turn);
  if (asked_op_ != 0 && turn.now.steady >= asked_until_) StartOver(turn, kRetryAfter);
  MoveTask* const task = current();
  if (task == nullptr || !ready_ || !can_fetch_ || state_.control.paused) return;
  if (asked_op_ != 0 || turn.now.steady < next_at_) return;
  if (task->before.empty()) return EndTask(turn, *task);  // all who had it are given up
  if (!task->progress.fetched) return Fetch(turn, *task);
  if (errands_.empty()) Compare(turn, *task);
}

std::optional<Micros> Movement::next_deadline() const {
  if (asked_op_ != 0) return asked_until_;
  if (!ready_ || !can_fetch_ || state_.control.paused || !errands_.empty() || current() == nullptr)
    return std::nullopt;
  if (asked_all_ || pages_.size() >= kPagesMax) return std::nullopt;
  return next_at_;
}

// The replica whose place is taken, if all that it confirmed can be had from it.
bool Movement::IsGiver(const Turn& turn, const MoveTask& task) const {
  return task.leaver && task.leaver != bad_giver_ && turn.Up(task.leaver) &&
         turn.layouts.HasAcked(task.leaver) && Has(task.before, task.leaver);
}

bool Movement::ChooseSource(const Turn& turn, MoveTask& task) {
  MoveProgress& progress = task.progress;
  if (progress.source && progress.source != bad_giver_) {
    if (turn.Up(progress.source)) {
      source_lost_at_.reset();
      return true;
    }
    if (!source_lost_at_) source_lost_at_ = turn.now.steady;
    if (turn.now.steady < *source_lost_at_ + kSourcePatience) return false;
  }
  source_lost_at_.reset();
  NodeId next = IsGiver(turn, task) ? task.leaver : NodeId{};
  for (const NodeId node : task.before) {
    if (!next && turn.Up(node) && node != bad_giver_) next = node;
  }
  if (!next) {
    bad_giver_ = {};  // there is nobody else: it may do by and by
    return false;
  }
  if (next != task.leaver || progress.source) progress.mixed = true;
  progress.source = next;
  return true;
}

void Movement::Fetch(const Turn& turn, MoveTask& task) {
  if (asked_all_ || pages_.size() >= kPagesMax) return;
  if (replica_.disk_is_behind()) {
    next_at_ = turn.now.steady + kDiskPause;
    return;
  }
  if (!ChooseSource(turn, task)) {
    next_at_ = turn.now.steady + kRetryAfter;
    return;
  }
  if (asked_after_.empty())
    asked_after_ = task.progress.after.empty() ? task.span.begin : task.progress.after;
  asked_op_ = dropper_.NewOp();
  asked_until_ = turn.now.steady + kPatience;
  turn.Send(task.progress.source, asked_op_,
            peer::FetchPage{.after = asked_after_,
                            .end = task.span.end,
                            .rows_max = kPageBytes / kRowBytesMin,
                            .bytes_max = kPageBytes,
                            .move = true});
}

void Movement::PageReply(const Turn& turn, NodeId from, OpId op, peer::FetchPageReply reply) {
  MoveTask* const task = current();
  if (task == nullptr || op != asked_op_ || from != task->progress.source) return;
  asked_op_ = 0;
  if (reply.code != absl::StatusCode::kOk) {
    // It fills; or it knows another layout, which passes.
    if (reply.code == absl::StatusCode::kUnavailable) bad_giver_ = from;
    return StartOver(turn, kRetryAfter);
  }
  if (!reply.complete && reply.rows.empty()) return StartOver(turn, kRetryAfter);
  if (reply.skipped) {
    bad_giver_ = from == task->leaver ? from : bad_giver_;
    task->progress.mixed = true;
  }
  Page page = {.op = dropper_.NewOp(), .unconfirmed = reply.rows.size()};
  if (!reply.complete) page.covered_to = reply.rows.back().row_key;
  asked_all_ = reply.complete;
  asked_after_ = page.covered_to;
  next_at_ = std::max(next_at_, turn.now.steady) + TimeOf(reply.rows);
  for (Row& row : reply.rows) {
    page.keys += 1;
    page.bytes += BytesOf(row);
    turn.Send(turn.self, page.op,
              peer::StoreRow{.row_key = std::move(row.row_key),
                             .record = std::move(row.record),
                             .cut = reply.cut,
                             .repair = true});
  }
  keys_received_ += page.keys;
  bytes_received_ += page.bytes;
  pages_.push_back(page);
  EndPages(turn, *task);
}

void Movement::RowStored(const Turn& turn, OpId op, absl::StatusCode code) {
  const auto page = std::ranges::find(pages_, op, &Page::op);
  if (page == pages_.end()) return;
  // Below this node's stable cut nothing is news.
  if (code != absl::StatusCode::kOk && code != absl::StatusCode::kOutOfRange)
    return StartOver(turn, kRetryAfter);
  if (--page->unconfirmed == 0) EndPages(turn, *current());
}

// In their order: the place up to which all is durable moves on.
void Movement::EndPages(const Turn& turn, MoveTask& task) {
  bool ended = false;
  while (!pages_.empty() && pages_.front().unconfirmed == 0) {
    const Page page = pages_.front();
    pages_.pop_front();
    ended = true;
    task.progress.keys += page.keys;
    task.progress.bytes += page.bytes;
    if (page.covered_to.empty()) {
      task.progress.fetched = true;
      asked_all_ = false;
      asked_after_.clear();
      if (!task.progress.mixed) return EndTask(turn, task);
    } else {
      task.progress.after = page.covered_to;
    }
  }
  if (ended) Persist(turn);
}

// With whom it has to compare before it has all.
std::vector<NodeId> Movement::ToCompare(const Turn& turn, const MoveTask& task) const {
  if (IsGiver(turn, task)) return {task.leaver};
  std::vector<NodeId> others = task.before;
  std::erase(others, task.leaver);
  return others.empty() ? task.before : others;  // where one node held all, none but that one will do
}

void Movement::Compare(const Turn& turn, MoveTask& task) {
  bool all = true;
  for (const NodeId node : ToCompare(turn, task)) {
    if (Has(task.progress.compared, node)) continue;
    all = false;
    if (!turn.Up(node)) continue;
    const OpId id = dropper_.NewOp();
    errands_[id] = node;
    exchange_.Ask(turn, {id, node, task.keyspace, task.range});
  }
  if (all) return EndTask(turn, task);
  next_at_ = turn.now.steady + kRetryAfter;
}

void Movement::ErrandEnded(const Turn& turn, OpId id, bool ok) {
  const auto errand = errands_.find(id);
  if (errand == errands_.end()) return;
  MoveTask* const task = current();
  if (ok && task != nullptr) {
    task->progress.compared.push_back(errand->second);
    Persist(turn);
  }
  if (!ok && task != nullptr && errand->second == task->leaver) bad_giver_ = task->leaver;
  errands_.erase(errand);
  if (ok && errands_.empty()) next_at_ = {};
}

void Movement::EndTask(const Turn& turn, MoveTask& task) {
  task.progress.done = true;
  bad_giver_ = {};
  StartOver(turn, Micros{});
  Persist(turn);
  Settle(turn);
}

// From the last place that is durable; what is under way is forgotten.
void Movement::StartOver(const Turn& turn, Micros pause) {
  asked_op_ = 0;
  asked_after_.clear();
  asked_all_ = false;
  pages_.clear();
  errands_.clear();
  exchange_.CancelErrands(/*give_only=*/false);
  source_lost_at_.reset();
  next_at_ = std::max(next_at_, turn.now.steady + pause);
}

Micros Movement::TimeOf(const std::vector<Row>& rows) const {
  uint64_t bytes = 0;
  for (const Row& row : rows) bytes += std::max<uint64_t>(BytesOf(row), kRowBytesMin);
  return Micros{static_cast<int64_t>(bytes * 1'000'000 / bytes_per_second())};
}

uint64_t Movement::bytes_per_second() const {
  return state_.control.bytes_per_second == 0 ? kBytesPerSecond : state_.control.bytes_per_second;
}

void Movement::PeerLost(const Turn& turn, NodeId node) {
  const MoveTask* const task = current();
  if (task != nullptr && asked_op_ != 0 && task->progress.source == node) StartOver(turn, kRetryAfter);
}

void Movement::Control(const Turn& turn, const ControlMoves& control) {
  if (control.paused) state_.control.paused = *control.paused;
  if (control.bytes_per_second) state_.control.bytes_per_second = *control.bytes_per_second;
  next_at_ = {};
  Persist(turn);
}

}  // namespace gyre
