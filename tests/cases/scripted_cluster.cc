// A simulated cluster that does what a test says.
#include "tests/cases/scripted_cluster.h"

#include <algorithm>

#include "ring/allocator.h"
#include "server/core/replica_set.h"
#include "storage/format/row_key.h"

namespace gyre::cases {
namespace {

constexpr Micros kOnTheWay = {300};
constexpr Micros kNoticed = Millis(40);

}  // namespace

ScriptedCluster::ScriptedCluster(Options options) : world_(1, /*tracing=*/false) {
  std::vector<FirstMember> members;
  const int count = options.members == 0 ? options.nodes : options.members;
  for (int i = 1; i <= count; ++i) members.push_back({.id = NodeId{static_cast<uint64_t>(i)}, .zone = ""});
  Layout layout = FirstLayout(std::move(members));
  for (KeyspaceSpec& keyspace : options.keyspaces) layout = *WithKeyspace(layout, std::move(keyspace));
  view_ = *MakeView(std::move(layout));
  layouts_ = {.view = view_};
  sim::SimNode::Host& host = *this;
  for (int i = 1; i <= options.nodes; ++i) {
    nodes_.push_back(
        std::make_unique<sim::SimNode>(world_, host, calm_, NodeId{static_cast<uint64_t>(i)}, i));
    nodes_.back()->SetLimits(options.limits);
    nodes_.back()->SetExactClock();
    nodes_.back()->Heal();  // the disk works, and is fast
  }
  for (size_t i = 0; i < nodes_.size(); ++i) Start(i);
  Run(Seconds(1));
}

// ---- time

void ScriptedCluster::Run(Micros time) {
  world_.RunUntil(world_.now() + time);
  ASSERT_TRUE(world_.ok()) << world_.violations().front();
}

bool ScriptedCluster::RunUntil(const std::function<bool()>& met, Micros patience) {
  const Micros end = world_.now() + patience;
  while (!met()) {
    if (world_.now() >= end) return false;
    world_.RunUntil(world_.now() + Millis(1));
  }
  return true;
}

bool ScriptedCluster::Quiet() const {
  return std::ranges::all_of(nodes_, [](const auto& each) {
    if (!each->alive()) return true;
    const Node& node = each->lane().node();
    return node.replica().hints().empty() && node.handoff().counted() && node.exchange().unequal() == 0 &&
           !node.exchange().busy() && !node.exchange().filling();
  });
}

void ScriptedCluster::Quiesce() {
  // What is held for equal was perhaps compared before the last fault: let a whole round begin and end.
  std::vector<uint64_t> rounds;
  for (size_t i = 0; i < size(); ++i) {
    rounds.push_back(alive(i) ? core(i).exchange().counters().rounds + 2 : 0);
  }
  const bool quiet = RunUntil([&] {
    for (size_t i = 0; i < size(); ++i)
      if (alive(i) && core(i).exchange().counters().rounds < rounds[i]) return false;
    return Quiet();
  });
  ASSERT_TRUE(quiet) << "the replicas do not become equal";
  ExpectEqualReplicas();
}

void ScriptedCluster::PassWeeks(int weeks) {
  constexpr int64_t kDayMs = 24 * 3600 * 1000;
  for (int day = 0; day < 7 * weeks; ++day) {
    for (const auto& node : nodes_) node->JumpWallClock(kDayMs);
    Run(Seconds(60));
  }
}

bool ScriptedCluster::RunUntilCollected() {
  return RunUntil([&] {
    for (size_t i = 0; i < size(); ++i)
      if (RowsOnDisk(i, Table::kCollect) != 0) return false;
    return true;
  });
}

void ScriptedCluster::ExpectEqualReplicas() {
  // What one has collected already the others are about to.
  uint64_t cut = 0;
  for (size_t i = 0; i < size(); ++i)
    if (alive(i)) cut = std::max(cut, core(i).replica().cuts().all);
  std::map<std::string, std::vector<std::string>> rows;
  for (const auto& node : nodes_) {
    if (view_->ring.IndexOf(node->id()) < 0) continue;
    const absl::Status status =
        node->engine().Scan(Table::kRows, {}, [&](std::string_view key, std::string_view value) {
          const RecordBytes lasts = Collected(std::make_shared<const std::string>(value), cut);
          if (lasts != nullptr) rows[std::string(key)].push_back(*lasts);
          return true;
        });
    ASSERT_TRUE(status.ok()) << status;
  }
  for (const auto& [row_key, copies] : rows) {
    RowKeyParts parts;
    ASSERT_TRUE(ParseRowKey(row_key, parts));
    const KeyspaceSpec& keyspace = *view_->Keyspace(parts.keyspace);
    EXPECT_EQ(copies.size(), std::min(view_->layout.members.size(), static_cast<size_t>(keyspace.n)))
        << parts.key;
    for (const std::string& copy : copies) EXPECT_EQ(copy, copies.front()) << parts.key;
  }
}

// ---- layouts

Layout ScriptedCluster::WithMembers(const std::vector<size_t>& members) const {
  Layout next = view_->layout;
  next.members.clear();
  for (const size_t index : members) {
    const NodeId id{index + 1};
    next.members.push_back({id, "", 1, HashedTokens(id, 16)});
  }
  return next;
}

void ScriptedCluster::BeginMove(Layout next) {
  ASSERT_FALSE(moving());
  next.epoch = next.fence = view_->layout.epoch + 1;
  next.base_digest = view_->digest;
  layouts_ = {
      .view = *MakeView(std::move(next)), .other = view_, .reads_other = true, .stamp = layouts_.stamp + 1};
  view_ = layouts_.view;
  TellLayouts();
}

void ScriptedCluster::AbortMove() {
  ASSERT_TRUE(moving());
  Layout back = layouts_.other->layout;
  back.epoch = back.fence = view_->layout.epoch + 1;
  back.base_digest = view_->digest;
  back.abort = true;
  layouts_ = {.view = *MakeView(std::move(back)), .other = view_, .stamp = layouts_.stamp + 1};
  view_ = layouts_.view;
  TellLayouts();
}

void ScriptedCluster::TellLayouts() {
  for (const auto& node : nodes_) {
    if (node->alive()) node->Push(NewLayouts{layouts_});
  }
  world_.In(Millis(20), [this] { StepLayouts(); });
}

bool ScriptedCluster::All(const std::function<bool(const LaneSteps& steps)>& done) const {
  return std::ranges::all_of(nodes_, [&](const auto& node) {
    if (!node->alive() || !layouts_.HasMember(node->id())) return true;
    const LaneSteps steps = node->lane().node().steps();
    return steps.stamp == layouts_.stamp && done(steps);
  });
}

// What membership does, where everybody hears everything at once.
void ScriptedCluster::StepLayouts() {
  if (!moving()) return;
  Layouts next = layouts_;
  ++next.stamp;
  if (!layouts_.all_acked) {
    if (All([](const LaneSteps& steps) { return steps.ready; })) {
      next.all_acked = true;
      for (const auto& node : nodes_) {
        if (node->alive() && layouts_.HasMember(node->id())) next.acked.push_back(node->id());
      }
    }
  } else if (view_->layout.abort) {
    next.other = nullptr;
  } else if (layouts_.reads_other) {
    if (All([](const LaneSteps& steps) { return steps.synced; })) next.reads_other = false;
  } else if (All([](const LaneSteps&) { return true; })) {
    next.other = nullptr;
  }
  const bool changed = next.all_acked != layouts_.all_acked || next.reads_other != layouts_.reads_other ||
                       next.other != layouts_.other;
  if (!changed) {
    world_.In(Millis(20), [this] { StepLayouts(); });
    return;
  }
  layouts_ = std::move(next);
  TellLayouts();
}

bool ScriptedCluster::RunUntilMoved(Micros patience) {
  return RunUntil(
      [this] {
        return !moving() && std::ranges::all_of(nodes_, [this](const auto& node) {
          return !node->alive() ||
                 (node->lane().node().steps().done && node->lane().node().steps().stamp == layouts_.stamp);
        });
      },
      patience);
}

// ---- faults

void ScriptedCluster::Kill(size_t node) {
  nodes_[node]->Crash();
  NoticeSoon();
}

void ScriptedCluster::Start(size_t node) {
  nodes_[node]->Start(layouts_);
  for (size_t other = 0; other < size(); ++other) {
    // A link of the last life is not one of this.
    if (believed_.erase(std::minmax(node, other)) > 0) nodes_[other]->Push(PeerDown{nodes_[node]->id()});
  }
  NoticeSoon();
}

void ScriptedCluster::Part(const std::set<size_t>& side) {
  for (size_t a = 0; a < size(); ++a) {
    for (size_t b = a + 1; b < size(); ++b) {
      if (side.contains(a) != side.contains(b)) cut_.insert({a, b});
    }
  }
  NoticeSoon();
}

void ScriptedCluster::Mend() {
  cut_.clear();
  NoticeSoon();
}

bool ScriptedCluster::Whole(size_t a, size_t b) const {
  return nodes_[a]->alive() && nodes_[b]->alive() && !cut_.contains(std::minmax(a, b));
}

void ScriptedCluster::NoticeSoon() {
  world_.In(kNoticed, [this] { Notice(); });
}

void ScriptedCluster::Notice() {
  for (size_t a = 0; a < size(); ++a) {
    for (size_t b = a + 1; b < size(); ++b) {
      if (Whole(a, b) == believed_.contains({a, b})) continue;
      if (Whole(a, b)) {
        believed_.insert({a, b});
        nodes_[a]->Push(PeerUp{nodes_[b]->id()});
        nodes_[b]->Push(PeerUp{nodes_[a]->id()});
      } else {
        believed_.erase({a, b});
        nodes_[a]->Push(PeerDown{nodes_[b]->id()});
        nodes_[b]->Push(PeerDown{nodes_[a]->id()});
      }
    }
  }
}

void ScriptedCluster::Inject(size_t node, const std::string& row_key, const Record& record) {
  const size_t from = (node + 1) % size();
  const auto bytes = std::make_shared<const std::string>(EncodeRecord(record));
  nodes_[node]->Push(FromPeer{nodes_[from]->id(),
                              {view_->layout.epoch},
                              {0, peer::StoreRow{.row_key = row_key, .record = bytes, .repair = true}}});
  const bool stored = RunUntil([&] {
    const RecordBytes durable = nodes_[node]->Durable(row_key);
    return durable != nullptr && DecodeRecord(*durable)->seen.Covers(record.seen);
  });
  ASSERT_TRUE(stored);
}

// ---- messages

void ScriptedCluster::Sent(sim::SimNode& from, NodeId to, LayoutMark layout, std::vector<Message> batch) {
  const size_t a = IndexOf(from.id());
  const size_t b = IndexOf(to);
  for (Message& message : batch) {
    if (const auto* store = std::get_if<peer::StoreRow>(&message.body)) {
      if (store->repair) ++repairs_;
      if (KindOf(message.op) == OpKind::kHandoff) ++deliveries_[store->row_key];
    }
    if (!Whole(a, b) || (filter_ && !filter_(a, b, message))) continue;
    const Micros delay = delay_ ? delay_(a, b, message) : kOnTheWay;
    world_.In(delay, [this, a, b, layout, life = nodes_[b]->life(), sent = std::move(message)] {
      if (!Whole(a, b) || nodes_[b]->life() != life) return;
      nodes_[b]->Push(FromPeer{nodes_[a]->id(), layout, sent});
    });
  }
}

void ScriptedCluster::Replied(sim::SimNode&, std::vector<Outbox::Reply> replies) {
  for (Outbox::Reply& reply : replies) {
    const auto waiting = waiting_.find(reply.ticket.value);
    if (waiting == waiting_.end()) {
      ADD_FAILURE() << "call " << reply.ticket.value << " was answered twice";
      continue;
    }
    const Done done = std::move(waiting->second);
    waiting_.erase(waiting);
    done(reply.result);
  }
}

// ---- calls

void ScriptedCluster::AskLater(size_t node, Call call, Done done, Micros timeout) {
  const uint64_t ticket = ++last_ticket_;
  waiting_[ticket] = std::move(done);
  nodes_[node]->Push(ClientCall{{ticket}, std::move(call), nodes_[node]->Steady() + timeout});
}

CallResult ScriptedCluster::Ask(size_t node, Call call, Micros timeout) {
  std::optional<CallResult> answer;
  AskLater(
      node, std::move(call), [&](const CallResult& result) { answer = result; }, timeout);
  if (!RunUntil([&] { return answer.has_value(); }, timeout + Seconds(1))) {
    ADD_FAILURE() << "a call was not answered by its deadline";
    waiting_.erase(last_ticket_);
    return {.status = absl::InternalError("no answer")};
  }
  return *std::move(answer);
}

std::string ScriptedCluster::Put(size_t node, PutCall put) {
  const CallResult result = Ask(node, std::move(put));
  EXPECT_TRUE(result.status.ok()) << result.status;
  return result.status.ok() ? std::get<WriteResult>(result.result).context : std::string();
}

std::string ScriptedCluster::Delete(size_t node, DeleteCall call) {
  const CallResult result = Ask(node, std::move(call));
  EXPECT_TRUE(result.status.ok()) << result.status;
  return result.status.ok() ? std::get<WriteResult>(result.result).context : std::string();
}

GetResult ScriptedCluster::Get(size_t node, GetCall get) {
  const CallResult result = Ask(node, std::move(get));
  EXPECT_TRUE(result.status.ok()) << result.status;
  return result.status.ok() ? std::get<GetResult>(result.result) : GetResult();
}

std::vector<std::string> ScriptedCluster::Values(size_t node, const std::string& key, ReplicaCount r) {
  std::vector<std::string> values;
  for (const ReadValue& value : Get(node, {.key = key, .r = r}).values) values.push_back(value.value);
  std::ranges::sort(values);
  return values;
}

std::map<std::string, std::vector<std::string>> ScriptedCluster::ScanAll(size_t node) {
  std::map<std::string, std::vector<std::string>> rows;
  std::string cursor;
  do {
    const CallResult result = Ask(node, ScanCall{.cursor = cursor});
    EXPECT_TRUE(result.status.ok()) << result.status;
    if (!result.status.ok()) return rows;
    const ScanResult& page = std::get<ScanResult>(result.result);
    for (const ScanRow& row : page.rows) {
      EXPECT_FALSE(rows.contains(row.key)) << row.key << " was listed twice";
      for (const ReadValue& value : row.values) rows[row.key].push_back(value.value);
    }
    cursor = page.next_cursor;
  } while (!cursor.empty());
  return rows;
}

// ---- what is there

std::string ScriptedCluster::RowKeyOf(const std::string& key, const std::string& keyspace) const {
  return MakeRowKey(view_->Keyspace(keyspace)->id, TokenOf(key).value, key);
}

std::vector<size_t> ScriptedCluster::ReplicasOf(const std::string& key, const std::string& keyspace) const {
  std::vector<size_t> replicas;
  const ReplicaSet set = ReplicaSet::Of(*view_, *view_->Keyspace(keyspace), TokenOf(key));
  for (const NodeId id : set.ids()) replicas.push_back(IndexOf(id));
  return replicas;
}

Record ScriptedCluster::OnDisk(size_t node, const std::string& key) {
  const RecordBytes bytes = nodes_[node]->Durable(RowKeyOf(key));
  return bytes ? *DecodeRecord(*bytes) : Record{};
}

size_t ScriptedCluster::RowsOnDisk(size_t node, Table table) {
  size_t rows = 0;
  const absl::Status status = nodes_[node]->engine().Scan(table, {}, [&](auto, auto) {
    ++rows;
    return true;
  });
  EXPECT_TRUE(status.ok()) << status;
  return rows;
}

uint64_t ScriptedCluster::HintsHeld() const {
  uint64_t held = 0;
  for (const auto& node : nodes_) {
    if (!node->alive()) continue;
    for (const auto& [target, count] : node->lane().node().replica().hints()) held += count.hints;
  }
  return held;
}

}  // namespace gyre::cases
