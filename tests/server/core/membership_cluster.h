// A simulated cluster of Memberships: one thread, virtual time, one seed; its network loses, doubles and
// reorders. Every rule that must hold at every moment is checked at every moment.
#pragma once

#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/core/membership.h"

namespace gyre {

struct NetworkFaults {
  double loss = 0;
  double duplicate = 0;
  Micros delay_max = Millis(20);  // each message takes 1 ms up to this, so a large one reorders
};

struct SimNode {
  Membership::Config config;
  std::map<std::string, std::string> disk;  // what is persisted survives everything
  std::unique_ptr<Membership> membership;   // nullptr: down
  uint64_t life = 0;
  int side = 0;                      // of a partition: messages pass within a side only
  Micros paused_until;               // what comes until then waits, and so do its timers
  std::shared_ptr<const View> view;  // as last handed out
  Layouts layouts;                   // the same
  std::vector<std::string> log;
  std::string removed;  // why it must end

  // The lane, as far as membership sees it: it does at once what it may, up to this step.
  MoveStep lane_up_to = MoveStep::kDone;
  bool lane_adopts = true;  // the layouts it is handed
  LaneSteps lane;
};

class MembershipCluster {
 public:
  explicit MembershipCluster(uint64_t seed) : random_(seed) {}

  // Adds a node with id `i` + 1 at address "a<i>", not yet started.
  int Add(int expect, std::vector<std::string> seeds) {
    const auto i = static_cast<int>(nodes_.size());
    SimNode node;
    node.config.self.id = NodeId{nodes_.size() + 1};
    node.config.self.zone = "zone" + std::to_string(i);
    node.config.seeds = std::move(seeds);
    node.config.bootstrap_expect = expect;
    nodes_.push_back(std::move(node));
    Move(i, "a" + std::to_string(i));
    return i;
  }
  void Move(int i, const std::string& address) {
    nodes_[i].config.self.peer_address = address;
    nodes_[i].config.self.address = "client-" + address;
  }
  void Start(int i) {
    SimNode& node = nodes_[i];
    ASSERT_EQ(node.membership, nullptr);
    node.config.self.generation = WallMs();
    node.config.random_seed = random_();
    absl::Status status;
    node.membership = std::make_unique<Membership>(node.config, node.disk, &status);
    ASSERT_TRUE(status.ok()) << status;
    if (node.view) {
      ASSERT_NE(node.membership->view(), nullptr) << "a layout was forgotten";
      EXPECT_EQ(node.membership->view()->digest, node.view->digest);
      EXPECT_EQ(node.membership->layouts().other == nullptr, node.layouts.other == nullptr);
    }
    node.layouts = node.membership->layouts();
    node.lane = {};
    ++node.life;
    Tick(i);
  }
  void StartAll() {
    for (int i = 0; i < size(); ++i) Start(i);
  }
  void Pause(int i, Micros until) { nodes_[i].paused_until = until; }
  void Crash(int i) {
    nodes_[i].membership.reset();
    ++nodes_[i].life;
  }
  bool up(int i) const { return nodes_[i].membership != nullptr; }
  int size() const { return static_cast<int>(nodes_.size()); }
  SimNode& node(int i) { return nodes_[i]; }
  Membership& operator[](int i) { return *nodes_[i].membership; }
  std::mt19937_64& random() { return random_; }
  bool Chance(double probability) { return static_cast<double>(random_() >> 11) * 0x1p-53 < probability; }
  NetworkFaults& faults() { return faults_; }
  Micros now() const { return now_; }
  uint64_t digest() const { return digest_; }  // of everything that happened
  uint64_t sent() const { return sent_; }      // messages, those that were lost included
  // Is shown each message that is sent.
  std::function<void(const control::Message&)> on_send;

  // Asks node `i` to create a keyspace with a name of its own. Returns the ticket, which is also in the name.
  uint64_t Create(int i, Micros time) {
    const uint64_t ticket = ++tickets_;
    Change(i, ticket, time, LayoutChange::Create{{.name = NameOf(ticket), .r = {}, .w = {}}});
    return ticket;
  }
  uint64_t Change(int i, Micros time, LayoutChange::What what) {
    const uint64_t ticket = ++tickets_;
    Change(i, ticket, time, std::move(what));
    return ticket;
  }
  static std::string NameOf(uint64_t ticket) { return "k" + std::to_string(ticket); }
  const absl::Status* AnswerTo(uint64_t ticket) const {
    const auto found = answers_.find(ticket);
    return found == answers_.end() ? nullptr : &found->second;
  }
  const std::map<uint64_t, absl::Status>& answers() const { return answers_; }

  // Until `done` holds, looked at after every event; false when it does not in that time.
  template <typename Done>
  bool RunUntil(Micros at_most, Done done) {
    const Micros end = now_ + at_most;
    while (!done()) {
      if (events_.empty() || events_.top().at > end) return false;
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      Happen(event);
    }
    return true;
  }
  void Run(Micros duration) {
    const Micros end = now_ + duration;
    while (!events_.empty() && events_.top().at <= end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      Happen(event);
    }
    now_ = end;
  }
  void Heal() {
    faults_ = {};
    for (int i = 0; i < size(); ++i) {
      nodes_[i].side = 0;
      if (!up(i)) Start(i);
    }
  }

  // All nodes that are up have one and the same view.
  bool Agreed() const {
    std::set<uint64_t> digests;
    for (const SimNode& node : nodes_) {
      if (node.membership) digests.insert(node.view ? node.view->digest : 0);
    }
    return digests.size() == 1 && !digests.contains(0);
  }
  std::set<uint64_t> cluster_ids() const {
    std::set<uint64_t> ids;
    for (const auto& [id, line] : lines_) ids.insert(id);
    return ids;
  }
  // What was refused for certain is in no layout, and what was acknowledged is in all later ones.
  void CheckAnswers() const {
    for (const auto& [ticket, status] : answers_) {
      EXPECT_NE(status.code(), absl::StatusCode::kAlreadyExists) << "the name is new: " << status;
      const bool refused = !status.ok() && status.code() != absl::StatusCode::kUnknown;
      for (const auto& [id, line] : lines_) {
        for (const auto& [epoch, view] : line) {
          if (refused) {
            EXPECT_EQ(view->Keyspace(NameOf(ticket)), nullptr) << status << " epoch " << epoch;
          }
        }
      }
    }
    for (const auto& [ticket, view] : acknowledged_) {
      for (const auto& [epoch, later] : lines_.at(view->layout.cluster_id)) {
        if (epoch >= view->layout.epoch) {
          EXPECT_NE(later->Keyspace(NameOf(ticket)), nullptr) << "epoch " << epoch;
        }
      }
    }
  }

 private:
  struct Event {
    Micros at;
    uint64_t order = 0;
    int timer_of = -1;  // else a message arrives
    uint64_t life = 0;
    int sender = -1;
    std::string to;
    std::shared_ptr<const control::Message> message;
    bool operator<(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);  // the earliest first
    }
  };

  uint64_t WallMs() const { return 1'700'000'000'000 + static_cast<uint64_t>(now_.value / 1000); }
  Now now_both() const { return {now_, WallMs()}; }

  void Note(uint64_t value) {
    digest_ ^= value;
    digest_ *= 0x9e3779b97f4a7c15;
    digest_ ^= digest_ >> 29;
  }

  void Change(int i, uint64_t ticket, Micros time, LayoutChange::What what) {
    MembershipOutbox out;
    nodes_[i].membership->Change(now_both(), {ticket, now_ + time, std::move(what)}, out);
    Deliver(i, out);
  }

  void Tick(int i) {
    MembershipOutbox out;
    RunLane(nodes_[i]);
    nodes_[i].membership->SetLaneSteps(nodes_[i].lane);
    nodes_[i].membership->Tick(now_both(), out);
    Deliver(i, out);
  }

  static void RunLane(SimNode& node) {
    if (!node.lane_adopts || node.layouts.view == nullptr) return;
    const auto may = [&](MoveStep step) { return node.lane_up_to >= step; };
    node.lane = {.stamp = node.layouts.stamp,
                 .epoch = node.layouts.view->layout.epoch,
                 .ready = may(MoveStep::kAck),
                 .synced = may(MoveStep::kSync) && node.layouts.all_acked,
                 .done = may(MoveStep::kDone) && node.layouts.other == nullptr};
  }

  bool Wait(const SimNode& node, Event event) {
    if (node.paused_until <= now_) return false;
    event.at = node.paused_until;
    Push(std::move(event));
    return true;
  }

  void Happen(const Event& event) {
    if (event.timer_of >= 0) {
      SimNode& node = nodes_[event.timer_of];
      if (Wait(node, event)) return;
      if (node.membership && node.life == event.life && node.membership->next_deadline() <= now_) {
        Tick(event.timer_of);
      }
      return;
    }
    for (int i = 0; i < size(); ++i) {
      if (!up(i) || nodes_[i].config.self.peer_address != event.to) continue;
      if (nodes_[i].side != nodes_[event.sender].side || Wait(nodes_[i], event)) continue;
      MembershipOutbox out;
      nodes_[i].membership->Step(now_both(), *event.message, out);
      Deliver(i, out);
    }
  }

  void Deliver(int i, MembershipOutbox& out) {
    SimNode& node = nodes_[i];
    Note(static_cast<uint64_t>(now_.value));
    Note(static_cast<uint64_t>(i));
    for (auto& persist : out.persists) {
      Note(TokenOf(persist.key + persist.value).value);
      ASSERT_EQ(persist.key.rfind("cluster/", 0), 0u);
      node.disk[persist.key] = std::move(persist.value);
    }
    for (auto& send : out.sends) Send(i, std::move(send));
    for (auto& answer : out.answers) Answered(answer);
    for (auto& sentence : out.log) {
      Note(TokenOf(sentence).value);
      EXPECT_EQ(sentence.find("must never happen"), std::string::npos) << sentence;
      EXPECT_EQ(sentence.find("two were chosen"), std::string::npos) << sentence;
      node.log.push_back(std::move(sentence));
    }
    if (!out.removed.empty()) node.removed = out.removed;
    if (out.new_layouts) HandedOut(node, *out.new_layouts);
    const Micros next = node.membership->next_deadline();
    EXPECT_TRUE(std::max(next, node.paused_until) > now_ - Seconds(1)) << "a tick was due long ago";
    Event timer;
    timer.at = std::max(next, now_ + Micros{1});
    timer.timer_of = i;
    timer.life = node.life;
    Push(std::move(timer));
  }

  void Send(int i, MembershipOutbox::Send send) {
    Note(TokenOf(send.to_address).value + send.message.body.index());
    ++sent_;
    if (on_send) on_send(send.message);
    Event event;
    event.sender = i;
    event.to = std::move(send.to_address);
    event.message = std::make_shared<const control::Message>(std::move(send.message));
    const int copies = Chance(faults_.loss) ? 0 : Chance(faults_.duplicate) ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      const auto range = static_cast<uint64_t>(faults_.delay_max.value);
      event.at = now_ + Millis(1) + Micros{static_cast<int64_t>(random_() % range)};
      Push(event);
    }
  }

  void Push(Event event) {
    event.order = ++events_made_;
    events_.push(std::move(event));
  }

  void Answered(const MembershipOutbox::Answer& answer) {
    Note(answer.ticket + static_cast<uint64_t>(answer.status.code()));
    EXPECT_TRUE(answers_.emplace(answer.ticket, answer.status).second) << "answered twice";
    EXPECT_EQ(answer.status.ok(), answer.view != nullptr);
    if (answer.status.ok() && answer.view->Keyspace(NameOf(answer.ticket)) != nullptr) {
      acknowledged_.emplace_back(answer.ticket, answer.view);
    }
  }

  // What may never be, whatever happens: that a layout has retired somewhere and is gone back from elsewhere.
  void HandedOut(SimNode& node, const Layouts& layouts) {
    EXPECT_GT(layouts.stamp, node.layouts.stamp);
    EXPECT_TRUE(layouts.other != nullptr || !layouts.reads_other);
    const Layout& newest = layouts.view->layout;
    if (layouts.other != nullptr) {
      EXPECT_TRUE(newest.moves());
      EXPECT_EQ(newest.base_digest, layouts.other->digest);
    } else if (newest.moves() && !newest.abort) {
      retired_.insert(layouts.view->digest);
    }
    if (newest.abort) aborted_.insert(newest.base_digest);
    for (const uint64_t digest : aborted_) EXPECT_FALSE(retired_.contains(digest)) << "retired and aborted";
    const bool newer = node.view == nullptr || layouts.view->digest != node.view->digest;
    node.layouts = layouts;
    if (newer) Activated(node, layouts.view);
  }

  void Activated(SimNode& node, const std::shared_ptr<const View>& view) {
    const Layout& layout = view->layout;
    EXPECT_EQ(node.membership->view(), view);
    if (node.view) {
      EXPECT_LT(node.view->layout.epoch, layout.epoch);
      EXPECT_EQ(node.view->layout.cluster_id, layout.cluster_id);
    }
    node.view = view;
    auto& line = lines_[layout.cluster_id];
    const auto [known, first] = line.emplace(layout.epoch, view);
    EXPECT_EQ(known->second->digest, view->digest) << "two layouts of epoch " << layout.epoch;
    if (first && line.contains(layout.epoch - 1)) {
      EXPECT_EQ(layout.base_digest, line.at(layout.epoch - 1)->digest);
    }
    for (const Member& member : layout.members) {
      const auto [home, new_member] = home_.emplace(member.id, layout.cluster_id);
      EXPECT_EQ(home->second, layout.cluster_id) << "a node in two clusters";
    }
  }

  std::mt19937_64 random_;
  std::vector<SimNode> nodes_;
  std::priority_queue<Event> events_;
  uint64_t events_made_ = 0;
  Micros now_ = Seconds(1);
  NetworkFaults faults_;
  uint64_t tickets_ = 0;
  uint64_t digest_ = 0;
  uint64_t sent_ = 0;
  std::map<uint64_t, absl::Status> answers_;
  std::vector<std::pair<uint64_t, std::shared_ptr<const View>>> acknowledged_;
  std::map<uint64_t, std::map<uint64_t, std::shared_ptr<const View>>> lines_;  // by cluster, by epoch
  std::set<uint64_t> retired_;       // digests of layouts whose movement is known to be over somewhere
  std::set<uint64_t> aborted_;       // and of those from which a layout goes back
  std::map<NodeId, uint64_t> home_;  // the cluster of each member ever
};

}  // namespace gyre
