// A lane: the one loop that turns a node's obligations into I/O.
#include "server/lane/lane.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gyre {

void Lane::Turn(std::vector<Input>& inputs) {
  const Now now = runtime_.clock.Read();
  Settle(now, inputs);
  node_.Tick(now, out_);
  Collect(to_self_);
  Settle(now, to_self_);
  StartCommit();
  Publish();  // before anybody is told
  SendAll();
}

// Steps the core until nothing that it can do by itself is left.
void Lane::Settle(Now now, std::vector<Input>& inputs) {
  std::vector<Input> again;
  do {
    node_.Expect(inputs);
    for (Input& input : inputs) {
      if (const auto* batch = std::get_if<Committed>(&input)) {
        committing_ = false;
        if (!batch->status.ok()) Rebase(batch->rows, again);
      }
      node_.Step(now, std::move(input), out_);
    }
    inputs.clear();
    Read(now);
    Collect(again);
    inputs.swap(again);
  } while (!inputs.empty());
}

// A batch failed: what waits was made on top of it, and goes on top of what the disk holds instead.
void Lane::Rebase(const std::vector<RowCommit>& failed, std::vector<Input>& to_self) {
  Collect(to_self);
  absl::flat_hash_map<std::string_view, RecordBytes> on_disk;
  for (const RowCommit& row : failed) on_disk.try_emplace(row.row_key, row.before);
  for (RowCommit& row : waiting_.rows) {
    const auto found = on_disk.find(row.row_key);
    if (found == on_disk.end()) continue;
    row.before = found->second;
    on_disk.erase(found);  // the next change of this row is on top of this one
  }
}

// All rows that this round asks for are read in one pass over the disk.
void Lane::Read(Now now) {
  while (!out_.reads.empty() || !out_.page_reads.empty()) {
    const std::vector<std::string> row_keys = std::exchange(out_.reads, {});
    std::vector<absl::StatusOr<RecordBytes>> records = runtime_.disk.ReadRows(row_keys);
    for (size_t i = 0; i < row_keys.size(); ++i) {
      node_.Step(now, RowRead{row_keys[i], std::move(records[i])}, out_);
    }
    for (PageRequest& request : std::exchange(out_.page_reads, {})) {
      peer::FetchPageReply page = runtime_.disk.ReadPage(request.page);
      node_.Step(now, PageRead{std::move(request), std::move(page)}, out_);
    }
  }
}

// Sorts the outbox by where things go. What is addressed to this node comes back as its own input.
void Lane::Collect(std::vector<Input>& to_self) {
  for (Outbox::Send& send : out_.sends) {
    if (send.to == self_) {
      to_self.push_back(FromPeer{self_, node_.mark(), std::move(send.message)});
      continue;
    }
    std::vector<Message>& batch = to_peers_[send.to];
    if (batch.empty()) peers_.push_back(send.to);
    batch.push_back(std::move(send.message));
  }
  out_.sends.clear();
  std::move(out_.replies.begin(), out_.replies.end(), std::back_inserter(replies_));
  out_.replies.clear();
  std::move(out_.commits.begin(), out_.commits.end(), std::back_inserter(waiting_.rows));
  out_.commits.clear();
  if (out_.actor) waiting_.actor = std::exchange(out_.actor, std::nullopt);
  if (out_.cuts) waiting_.cuts = std::exchange(out_.cuts, std::nullopt);
  if (out_.moves) waiting_.moves = std::exchange(out_.moves, std::nullopt);
  std::move(out_.stale.begin(), out_.stale.end(), std::back_inserter(waiting_.stale));
  out_.stale.clear();
  waiting_.filled = waiting_.filled || std::exchange(out_.filled, false);
  for (SumRequest& request : out_.sum_reads) runtime_.disk.ReadSums(std::move(request));
  out_.sum_reads.clear();
  if (out_.layout_wanted_from) layout_wanted_from_ = std::exchange(out_.layout_wanted_from, {});
}

void Lane::StartCommit() {
  if (committing_ || waiting_.empty()) return;
  size_t bytes = 0;
  const auto end = std::find_if(waiting_.rows.begin(), waiting_.rows.end(), [&](const RowCommit& row) {
    if (bytes > kBatchBytesMax) return true;
    bytes += row.row_key.size() + (row.after ? row.after->size() : 0);
    return false;
  });
  Disk::Batch batch = {.actor = std::exchange(waiting_.actor, std::nullopt),
                       .cuts = std::exchange(waiting_.cuts, std::nullopt),
                       .moves = std::exchange(waiting_.moves, std::nullopt),
                       .stale = std::exchange(waiting_.stale, {}),
                       .filled = std::exchange(waiting_.filled, false)};
  if (end == waiting_.rows.end()) {
    batch.rows.swap(waiting_.rows);
  } else {
    batch.rows.assign(std::make_move_iterator(waiting_.rows.begin()), std::make_move_iterator(end));
    waiting_.rows.erase(waiting_.rows.begin(), end);
  }
  committing_ = true;
  runtime_.disk.Commit(std::move(batch));
}

void Lane::Publish() {
  const Exchange& exchange = node_.exchange();
  const ExchangeCounters& counters = exchange.counters();
  const auto set = [](auto& to, auto value) { to.store(value, std::memory_order_relaxed); };
  set(runtime_.stats.calls_in_flight, node_.calls_in_flight());
  set(runtime_.stats.peer_messages_refused, node_.peer_messages_refused());
  set(runtime_.stats.ranges_compared, counters.ranges_compared);
  set(runtime_.stats.records_compared, counters.records_compared);
  set(runtime_.stats.records_sent, counters.records_sent);
  set(runtime_.stats.repair_bytes_sent, counters.bytes_sent);
  set(runtime_.stats.hash_bytes_sent, counters.hash_bytes);
  set(runtime_.stats.unequal_ranges, exchange.unequal());
  set(runtime_.stats.exchange_busy, exchange.busy());
  runtime_.stats.exchange_rounds.store(counters.rounds, std::memory_order_release);
  LaneStats::Hints hints;
  uint64_t held = 0;
  for (const auto& [node, count] : node_.replica().hints()) {
    hints[node] = {.hints = count.hints, .bytes = count.bytes};
    held += count.hints;
  }
  for (const auto& [node, delivered] : node_.replica().hints_delivered()) hints[node].delivered = delivered;
  set(runtime_.stats.hints_held, held);
  set(runtime_.stats.filling, exchange.filling());
  set(runtime_.stats.dropping, !node_.dropper().done());
  set(runtime_.stats.hints_refused, node_.replica().hints_refused());
  set(runtime_.stats.hints_counted, node_.handoff().counted());
  set(runtime_.stats.clock_offset_ms, node_.stable_cut().clock_offset_ms());
  set(runtime_.stats.clock_is_off, node_.stable_cut().clock_is_off());
  set(runtime_.stats.records_from_the_future, node_.replica().records_from_the_future());
  set(runtime_.stats.stable_cut_ms, MillisOfCounter(node_.replica().cuts().all));
  runtime_.stats.SetSteps(node_.steps());
  PublishMoves();
  if (hints != hints_) {
    hints_ = hints;
    runtime_.stats.SetHints(std::move(hints));
  }
  if (node_.stable_cut().blockers() != blockers_) {
    blockers_ = node_.stable_cut().blockers();
    LaneStats::Blockers blockers;
    for (const StableCut::Blocker& each : blockers_) blockers.push_back({each.node, each.why});
    runtime_.stats.SetCutBlockers(std::move(blockers));
  }
}

void Lane::PublishMoves() {
  const Movement& movement = node_.movement();
  runtime_.stats.move_keys_received.store(movement.keys_received(), std::memory_order_relaxed);
  runtime_.stats.move_bytes_received.store(movement.bytes_received(), std::memory_order_relaxed);
  runtime_.stats.moves_paused.store(movement.control().paused, std::memory_order_relaxed);
  runtime_.stats.move_bytes_per_second.store(movement.bytes_per_second(), std::memory_order_relaxed);
  if (movement.tasks().empty() && !moves_published_) return;
  moves_published_ = !movement.tasks().empty();
  LaneStats::Moves moves;
  for (const MoveTask& task : movement.tasks()) {
    const MoveProgress& progress = task.progress;
    MoveStats stats = {.from = progress.source ? progress.source : task.leaver,
                       .keyspace = task.keyspace,
                       .range = task.range,
                       .keys_done = progress.keys,
                       .bytes_done = progress.bytes,
                       .fraction_done = task.FractionDone()};
    if (progress.done) {
      stats.state = MoveStats::State::kDone;
    } else if (movement.control().paused) {
      stats.state = MoveStats::State::kPaused;
    } else if (movement.running(task)) {
      stats.state = MoveStats::State::kRunning;
    }
    moves.push_back(stats);
  }
  runtime_.stats.SetMoves(std::move(moves));
}

void Lane::SendAll() {
  for (const NodeId peer : peers_) {
    runtime_.network.Send(peer, node_.mark(), std::exchange(to_peers_[peer], {}));
  }
  peers_.clear();
  if (!replies_.empty()) runtime_.network.Reply(std::exchange(replies_, {}));
  if (layout_wanted_from_) runtime_.network.WantLayout(std::exchange(layout_wanted_from_, {}));
}

}  // namespace gyre
