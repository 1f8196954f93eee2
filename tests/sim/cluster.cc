// A simulated cluster: its network and its faults.
#include "tests/sim/cluster.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "server/core/describe.h"

namespace gyre::sim {
namespace {

constexpr Micros kNoticeEvery = Millis(40);
constexpr Micros kAnswerSlack = Millis(300);

KeyspaceSpec DrawKeyspace(Random& random, const std::string& name, int nodes, ConflictRule rule) {
  KeyspaceSpec keyspace = {.name = name,
                           .n = static_cast<int>(random.Below(static_cast<uint64_t>(std::min(nodes, 5)))) + 1,
                           .r = {},
                           .w = {},
                           .conflict = rule};
  const auto count = [&] {
    const auto how = static_cast<ReplicaCount::How>(random.Below(4));
    const int64_t count = 1 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(keyspace.n)));
    return ReplicaCount{how, how == ReplicaCount::How::kCount ? count : 0};  // a name has no number beside it
  };
  if (random.Chance(0.5)) keyspace.r = count();
  if (random.Chance(0.5)) keyspace.w = count();
  return keyspace;
}

std::vector<Message> WithoutForwards(const std::vector<Message>& batch) {
  std::vector<Message> rest;
  for (const Message& message : batch) {
    if (!std::holds_alternative<peer::Forward>(message.body)) rest.push_back(message);
  }
  return rest;
}

}  // namespace

Cluster::Cluster(World& world, int nodes)
    : world_(world), weather_(Weather::Draw(world.random())), invariants_(world) {
  Random& random = world_.random();
  constexpr int kUsualSizes[] = {3, 3, 4, 5, 5, 6, 2, 1};
  if (nodes == 0) nodes = kUsualSizes[random.Below(std::size(kUsualSizes))];
  const int first = nodes;
  if (first < 3) weather_.layout_change = {};
  if (weather_.layout_change != Micros{})
    nodes += 1 + static_cast<int>(random.Below(3));  // that are no members yet
  first_members_ = static_cast<size_t>(first);
  std::vector<FirstMember> members;
  for (int i = 1; i <= first; ++i) members.push_back({.id = NodeId{static_cast<uint64_t>(i)}, .zone = ""});
  Layout layout = FirstLayout(std::move(members));
  layout = *WithKeyspace(layout, DrawKeyspace(random, "lww", first, ConflictRule::kLastWriteWins));
  layout = *WithKeyspace(layout, DrawKeyspace(random, "other", first, ConflictRule::kSiblings));
  for (const KeyspaceSpec& keyspace : layout.keyspaces)
    replicas_max_ = std::max(replicas_max_, static_cast<size_t>(keyspace.n));
  view_ = *MakeView(std::move(layout));
  SimNode::Host& host = *this;
  SimControl::Host& control_host = *this;
  links_.resize(static_cast<size_t>(nodes * nodes));
  for (int i = 1; i <= nodes; ++i) {
    const NodeId id{static_cast<uint64_t>(i)};
    by_id_[id] = nodes_.size();
    nodes_.push_back(std::make_unique<SimNode>(world_, host, weather_, id, i));
    controls_.push_back(std::make_unique<SimControl>(world_, control_host, *nodes_.back()));
    if (i <= first) SimControl::Form(*nodes_.back(), view_->layout);
  }
  gone_.resize(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) Start(i);
  NoticeLinks();
}

// ---- the clients' way in

void Cluster::Ask(Question question) {
  const uint64_t ticket = ++last_ticket_;
  SimNode& node = *nodes_[question.node];
  const Micros timeout = question.timeout;
  Waiting& waiting = waiting_[ticket] = {.node = &node, .life = node.life(), .question = std::move(question)};
  if (!node.alive()) {
    const CallResult refused = {.status = absl::UnavailableError("connection refused")};
    world_.In(Millis(1), [this, ticket, refused] { Finish(ticket, &refused); });
    waiting.answered = true;
    return;
  }
  world_.In(world_.random().Between({50}, {500}), [this, ticket, timeout] {
    Waiting& asked = waiting_.at(ticket);
    if (asked.node->life() != asked.life || !asked.node->alive()) return Finish(ticket, nullptr);
    asked.node->Push(ClientCall{{ticket}, asked.question.call, asked.node->Steady() + timeout});
  });
  world_.In(timeout + kAnswerSlack, [this, ticket] { CheckAnswered(ticket); });
}

void Cluster::CheckAnswered(uint64_t ticket) {
  const auto found = waiting_.find(ticket);
  if (found == waiting_.end()) return;
  const Waiting& waiting = found->second;
  if (!waiting.answered && waiting.node->alive() && waiting.node->life() == waiting.life) {
    if (waiting.node->paused()) {
      return world_.At(waiting.node->paused_until() + kAnswerSlack,
                       [this, ticket] { CheckAnswered(ticket); });
    }
    world_.Violated(waiting.node->name() + ": did not answer call " + std::to_string(ticket) + " (" +
                    Describe(waiting.question.call) + ") by its deadline");
  }
  Finish(ticket, nullptr);
  waiting_.erase(ticket);
}

void Cluster::Finish(uint64_t ticket, const CallResult* result) {
  const auto found = waiting_.find(ticket);
  if (found == waiting_.end() || std::exchange(found->second.done, true)) return;
  const auto done = std::move(found->second.question.done);
  done(result);
}

void Cluster::Replied(SimNode& from, std::vector<Outbox::Reply> replies) {
  for (Outbox::Reply& reply : replies) {
    const uint64_t ticket = reply.ticket.value;
    world_.Trace(from.name(),
                 [&] { return "=> call " + std::to_string(ticket) + ": " + Describe(reply.result); });
    world_.Observe(ticket);
    world_.Observe(TokenOf(Describe(reply.result)).value);
    const auto found = waiting_.find(ticket);
    if (found == waiting_.end()) continue;  // after the client had given up: its node was paused
    Waiting& waiting = found->second;
    if (waiting.answered) {
      world_.Violated(from.name() + ": answered call " + std::to_string(ticket) + " twice");
      continue;
    }
    waiting.answered = true;
    waiting.question.answered(reply.result);
    if (!healed_ && reply.result.status.ok() && world_.random().Chance(weather_.crash_at_answer)) {
      world_.In(Millis(1), [this, index = IndexOf(from.id())] {
        if (!healed_) Crash(index);
      });
    }
    if (!healed_ && world_.random().Chance(weather_.reply_lost)) {
      world_.Add(Count::kLost);
      continue;  // CheckAnswered tells the client
    }
    world_.In(world_.random().Between({50}, {500}),
              [this, ticket, result = std::move(reply.result)] { Finish(ticket, &result); });
  }
}

// ---- the network

bool Cluster::Reachable(size_t a, size_t b) {
  return nodes_[a]->alive() && nodes_[b]->alive() && !link(a, b).cut;
}

void Cluster::Sent(SimNode& from, NodeId to, LayoutMark layout, std::vector<Message> batch) {
  Random& random = world_.random();
  const size_t a = IndexOf(from.id());
  const size_t b = IndexOf(to);
  for (const Message& message : batch) world_.Observe(message.op * 31 + message.body.index());
  if (link(a, b).cut || !nodes_[b]->alive()) return;
  if (!healed_ && random.Chance(weather_.loss)) return world_.Add(Count::kLost, batch.size());
  const auto send = [&](std::vector<Message> what) {
    const bool slow = !healed_ && random.Chance(weather_.slow);
    const Micros delay = slow ? random.Between({100}, weather_.slow_max) : random.Skewed({100}, Millis(2));
    world_.In(delay,
              [this, &from, b, layout, shared = std::make_shared<std::vector<Message>>(std::move(what))] {
                Deliver(from, b, layout, *shared);
              });
  };
  if (!healed_ && random.Chance(weather_.doubled)) {
    world_.Add(Count::kDoubled, batch.size());
    send(WithoutForwards(batch));
  }
  send(std::move(batch));
}

void Cluster::Deliver(SimNode& from, size_t to, LayoutMark layout, const std::vector<Message>& batch) {
  SimNode& node = *nodes_[to];
  if (!node.alive()) return;
  for (const Message& message : batch) node.Push(FromPeer{from.id(), layout, message});
}

// Who is up is found out by and by.
void Cluster::NoticeLinks() {
  for (size_t a = 0; a < nodes_.size(); ++a) {
    for (size_t b = a + 1; b < nodes_.size(); ++b) {
      if (healed_ || world_.random().Chance(0.3)) NoticeLink(a, b);
    }
  }
  world_.In(kNoticeEvery, [this] { NoticeLinks(); });
}

void Cluster::NoticeLink(size_t a, size_t b) {
  const bool whole = Reachable(a, b) && Reachable(b, a);
  const bool believed = link(a, b).believed && link(b, a).believed;
  if (whole == believed && link(a, b).believed == link(b, a).believed) return;
  for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
    if (whole && !link(a, b).believed && !link(b, a).believed) break;
    if (!link(one, other).believed || world_.random().Chance(0.3)) continue;
    link(one, other).believed = false;
    nodes_[one]->Push(PeerDown{nodes_[other]->id()});
    return;
  }
  if (!whole || link(a, b).believed || link(b, a).believed) return;
  link(a, b).believed = link(b, a).believed = true;
  nodes_[a]->Push(PeerUp{nodes_[b]->id()});
  nodes_[b]->Push(PeerUp{nodes_[a]->id()});
}

// ---- faults

void Cluster::Start(size_t node) {
  if (gone_[node]) return;
  std::vector<std::string> seeds;
  for (const auto& each : nodes_) seeds.push_back(SimControl::AddressOf(*each));
  if (!controls_[node]->Start(seeds)) gone_[node] = true;
}

void Cluster::Crash(size_t index, bool with_disk) {
  if (!nodes_[index]->alive()) return;
  Stop(index, with_disk);
  world_.In(world_.random().Skewed(Millis(5), Seconds(4)), [this, index] {
    if (!nodes_[index]->alive()) Start(index);
  });
}

void Cluster::Stop(size_t index, bool with_disk) {
  SimNode& node = *nodes_[index];
  controls_[index]->Stop();
  if (with_disk) {
    disk_lost_();
    node.LoseDisk();
  } else {
    node.Crash();
  }
  for (size_t other = 0; other < nodes_.size(); ++other) link(index, other).believed = false;
  for (const auto& [ticket, waiting] : waiting_) {
    if (waiting.node == &node && !waiting.answered)
      world_.In(Millis(1), [this, t = ticket] { Finish(t, nullptr); });
  }
}

// Two sides, or one direction between two nodes.
void Cluster::Partition() {
  if (nodes_.size() < 2) return;
  Random& random = world_.random();
  std::vector<std::pair<size_t, size_t>> cut;
  const bool one_way = random.Chance(0.3);
  std::vector<bool> side;
  for (size_t i = 0; i < nodes_.size(); ++i) side.push_back(random.Chance(0.5));
  for (size_t a = 0; a < nodes_.size(); ++a) {
    for (size_t b = 0; b < nodes_.size(); ++b) {
      if (side[a] != side[b] && (!one_way || side[a]) && !link(a, b).cut) cut.push_back({a, b});
    }
  }
  if (cut.empty()) return;
  world_.Add(Count::kPartitions);
  world_.Trace("net", [&] {
    std::string text = one_way ? "parts, one way: " : "parts: ";
    for (const auto& [a, b] : cut) text += nodes_[a]->name() + ">" + nodes_[b]->name() + " ";
    return text;
  });
  for (const auto& [a, b] : cut) link(a, b).cut = true;
  world_.In(random.Skewed(Millis(50), Seconds(6)), [this, cut] { Mend(cut); });
}

void Cluster::Mend(const std::vector<std::pair<size_t, size_t>>& cut) {
  world_.Trace("net", [] { return std::string("mends"); });
  for (const auto& [a, b] : cut) link(a, b).cut = false;
}

void Cluster::Repeat(Micros mean, Micros end, const std::function<void()>& what) {
  if (mean == Micros{}) return;
  const Micros next = world_.now() + world_.random().Between({1}, mean + mean);
  if (next >= end) return;
  world_.At(next, [this, mean, end, what] {
    what();
    Repeat(mean, end, what);
  });
}

void Cluster::BeginFaults(Micros end) {
  Random& random = world_.random();
  Repeat(weather_.crash, end, [this] { Crash(AnyNode()); });
  if (weather_.disk_lost && nodes_.size() > 1) {
    world_.At(random.Between({0}, end), [this] { Crash(AnyNode(), /*with_disk=*/true); });
  }
  Repeat(weather_.partition, end, [this] { Partition(); });
  Repeat(weather_.pause, end, [this, &random] {
    nodes_[AnyNode()]->PauseUntil(world_.now() + random.Skewed(Millis(20), Seconds(3)));
  });
  Repeat(weather_.clock_jump, end, [this, &random] {
    const int64_t most = weather_.clock_jump_ms_max;
    const int64_t jump = static_cast<int64_t>(random.Below(static_cast<uint64_t>(2 * most))) - most;
    SimNode& node = *nodes_[AnyNode()];
    world_.Add(Count::kClockJumps);
    world_.Trace(node.name(), [&] { return "clock jumps by " + std::to_string(jump) + " ms"; });
    node.JumpWallClock(jump);
  });
  Repeat(weather_.layout_change, end, [this] { ChangeMembers(); });
  Repeat(weather_.disk_full, end, [this, &random] {
    SimNode& node = *nodes_[AnyNode()];
    if (!node.alive()) return;
    node.SetDiskFull(true);
    world_.In(random.Between(Millis(100), Seconds(2)), [&node, life = node.life()] {
      if (node.alive() && node.life() == life) node.SetDiskFull(false);
    });
  });
}

void Cluster::Heal() {
  world_.Trace("net", [] { return std::string("all faults end"); });
  healed_ = true;
  for (Link& each : links_) each.cut = false;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i]->alive()) Start(i);
    nodes_[i]->Heal();
  }
}

}  // namespace gyre::sim
