// A simulated cluster: who its members are, and how that changes.
#include <algorithm>
#include <utility>

#include "server/core/describe.h"
#include "storage/format/row_key.h"
#include "tests/sim/cluster.h"

namespace gyre::sim {
namespace {

constexpr Micros kChangeTimeout = Seconds(5);

}  // namespace

// How far the movement of all nodes is.
std::string Cluster::Progress() {
  std::string text;
  for (SimNode* node : Living()) {
    const Movement& movement = node->lane().node().movement();
    const auto left =
        std::ranges::count_if(movement.tasks(), [](const MoveTask& t) { return !t.progress.done; });
    text += " " + node->name() + (movement.ready() ? " is ready" : " is not ready") +
            (movement.synced() ? ", synced" : "") + ", " + std::to_string(left) + " ranges left";
    if (node->lane().node().layouts().all_acked) text += ", all acked";
    for (const control::MemberStep& step : Control(*node).membership().steps()) {
      text += " " + std::to_string(step.node.value) + ":" + std::to_string(static_cast<int>(step.step));
    }
    text += ";";
  }
  return text;
}

const View& Cluster::view() {
  for (const auto& control : controls_) {
    if (!control->running() || control->layouts().view == nullptr) continue;
    if (control->layouts().view->layout.epoch > view_->layout.epoch) view_ = control->layouts().view;
  }
  ever_moved_ = ever_moved_ || view_->layout.fence > 0;
  return *view_;
}

std::vector<SimNode*> Cluster::Living() const {
  std::vector<SimNode*> living;
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (!gone_[i]) living.push_back(nodes_[i].get());
  return living;
}

std::vector<SimNode*> Cluster::Members() {
  std::vector<SimNode*> members;
  for (const Member& member : view().layout.members) members.push_back(nodes_[IndexOf(member.id)].get());
  return members;
}

std::vector<SimNode*> Cluster::ReplicasOf(const std::string& keyspace, const std::string& key) {
  std::vector<SimNode*> replicas;
  const ReplicaSet set = ReplicaSet::Of(view(), *view().Keyspace(keyspace), TokenOf(key));
  for (const NodeId id : set.ids()) replicas.push_back(nodes_[IndexOf(id)].get());
  return replicas;
}

std::vector<SimNode*> Cluster::HoldersOf(const std::string& keyspace, const std::string& key) {
  std::vector<SimNode*> replicas = ReplicasOf(keyspace, key);
  return ever_moved_ ? Nodes() : replicas;
}

void Cluster::Told(SimNode& from, const std::string& to_address, const control::Message& message) {
  Random& random = world_.random();
  const size_t a = IndexOf(from.id());
  for (size_t b = 0; b < nodes_.size(); ++b) {
    if (SimControl::AddressOf(*nodes_[b]) != to_address) continue;
    if (link(a, b).cut || !nodes_[b]->alive()) return;
    if (!healed_ && random.Chance(weather_.loss)) return;
    const int copies = !healed_ && random.Chance(weather_.doubled) ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      const bool slow = !healed_ && random.Chance(weather_.slow);
      const Micros delay = slow ? random.Between({100}, weather_.slow_max) : random.Skewed({100}, Millis(5));
      world_.In(delay, [this, b, message] { controls_[b]->Receive(message); });
    }
  }
}

void Cluster::Removed(SimNode& node) {
  const size_t index = IndexOf(node.id());
  world_.Trace(node.name(), [] { return std::string("ends: it was removed"); });
  gone_[index] = true;
  world_.In({0}, [this, index] {
    if (nodes_[index]->alive()) Stop(index, /*with_disk=*/false);
  });
}

void Cluster::AddKeyspace(KeyspaceSpec keyspace, std::function<void()> done) {
  replicas_max_ = std::max(replicas_max_, static_cast<size_t>(keyspace.n));
  const auto answered = [this, keyspace, done = std::move(done)](const absl::Status& status) {
    const bool there = status.ok() || status.code() == absl::StatusCode::kAlreadyExists;
    if (there) {
      view();
      world_.Add(Count::kLayouts);
      return done();
    }
    world_.In(Seconds(1), [this, keyspace, done] { AddKeyspace(keyspace, done); });
  };
  controls_[AnyNode()]->Change(LayoutChange::Create{keyspace}, kChangeTimeout, answered);
}

// What an operator might want, as far as no promise is given up: members that leave are up and complete.
std::optional<MemberChanges> Cluster::DrawChanges(const Layout& layout) {
  Random& random = world_.random();
  std::vector<NodeId> spare;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const NodeId id = nodes_[i]->id();
    const bool member = std::ranges::binary_search(layout.members, id, {}, &Member::id);
    const bool removed = std::ranges::binary_search(layout.removed, id);
    if (!gone_[i] && !member && !removed) spare.push_back(id);
  }
  const NodeId member = layout.members[random.Below(layout.members.size())].id;
  SimNode& leaver = *nodes_[IndexOf(member)];
  const bool complete = leaver.alive() && !leaver.lane().node().exchange().filling();
  MemberChanges changes;
  switch (random.Below(4)) {
    case 0:
      if (spare.empty()) return std::nullopt;
      for (const NodeId node : spare) {
        if (changes.add.empty() || random.Chance(0.3)) changes.add.push_back({.node = node, .zone = ""});
      }
      return changes;
    case 1:
      if (!complete || layout.members.size() <= std::max(replicas_max_, first_members_ - 1))
        return std::nullopt;
      changes.remove.push_back(member);
      return changes;
    case 2:
      if (!complete || spare.empty()) return std::nullopt;
      changes.replace.push_back({member, {.node = spare[random.Below(spare.size())], .zone = ""}});
      return changes;
    default:
      changes.weight[member] = 1 + static_cast<uint32_t>(random.Below(3));
      return changes;
  }
}

void Cluster::ChangeMembers() {
  const size_t by = AnyNode();
  SimControl& control = *controls_[by];
  if (!control.running() || control.layouts().view == nullptr || control.layouts().moving()) return;
  const View& base = *control.layouts().view;
  const std::optional<MemberChanges> changes = DrawChanges(base.layout);
  if (!changes) return;
  world_.Trace(nodes_[by]->name(), [] { return std::string("an operator changes the members"); });
  control.Change(LayoutChange::Members{*changes, base.digest, 0, base.layout.epoch}, kChangeTimeout,
                 [this, changes](const absl::Status& status) {
                   world_.Trace("operator", [&] { return "the change of members: " + status.ToString(); });
                   if (!status.ok()) return;
                   view();
                   world_.Add(Count::kMovements);
                   world_.Add(Count::kNodesRemoved, changes->remove.size() + changes->replace.size());
                   if (!healed_ && world_.random().Chance(0.7)) {
                     world_.In(world_.random().Skewed({0}, Seconds(1)), [this] { AbortMove(5); });
                   }
                 });
}

void Cluster::AbortMove(int attempts) {
  SimControl& control = *controls_[AnyNode()];
  if (!control.running() || !control.layouts().moving()) {
    if (attempts > 1) world_.In(Millis(20), [this, attempts] { AbortMove(attempts - 1); });
    return;
  }
  control.Change(LayoutChange::Abort{}, kChangeTimeout, [this](const absl::Status& status) {
    world_.Trace("operator", [&] { return "the abort: " + status.ToString(); });
    if (status.ok()) world_.Add(Count::kAborts);
  });
}

std::string Cluster::Unsettled() {
  const View& newest = view();
  std::vector<NodeId> members;
  for (const Member& member : newest.layout.members) members.push_back(member.id);
  for (SimNode* node : Living()) {
    SimControl& control = Control(*node);
    if (!control.running()) return node->name() + " does not run";
    const Layouts& layouts = control.layouts();
    if (layouts.view == nullptr || layouts.view->digest != newest.digest) {
      return node->name() + " does not know the newest layout";
    }
    if (layouts.moving()) return "data still moves:" + Progress();
    const LaneSteps steps = node->lane().node().steps();
    if (steps.epoch != newest.layout.epoch || !steps.done)
      return node->name() + " still holds what is not its own";
    std::string stray;
    (void)node->engine().Scan(Table::kRows, {}, [&](std::string_view key, std::string_view) {
      RowKeyParts parts;
      ParseRowKey(key, parts);
      const KeyspaceSpec* const keyspace = newest.Keyspace(parts.keyspace);
      if (keyspace == nullptr ||
          ReplicaSet::Of(newest, *keyspace, Token{parts.token}).SlotOf(node->id()) >= 0)
        return true;
      stray = DescribeRowKey(std::string(key));
      return false;
    });
    if (!stray.empty()) return node->name() + " holds " + stray + ", of which it is no replica";
  }
  if (newest.layout.voters != members) return "the members do not all vote";
  return {};
}

}  // namespace gyre::sim
