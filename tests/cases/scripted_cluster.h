// A simulated cluster in which only that goes wrong what a test says: real lanes and cores, virtual time,
// calm weather.
//
// Nodes are counted from 0. Unless told otherwise all clocks are equal, messages take 300 microseconds and
// overtake nobody, and who is up is known 40 milliseconds after it changed.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/node.h"

namespace gyre::cases {

inline constexpr ReplicaCount kOne = {ReplicaCount::How::kOne, 0};
inline constexpr ReplicaCount kAll = {ReplicaCount::How::kAll, 0};

class ScriptedCluster final : private sim::SimNode::Host {
 public:
  struct Options {
    int nodes = 3;
    int members = 0;  // of the first layout, the first of the nodes; 0: all
    NodeLimits limits = {};
    std::vector<KeyspaceSpec> keyspaces = {};  // beside "default"
  };
  ScriptedCluster() : ScriptedCluster(Options()) {}
  explicit ScriptedCluster(Options options);

  Micros now() const { return world_.now(); }
  void Run(Micros time);
  // Runs until `met`, which is then true; false when it was not within `patience`.
  [[nodiscard]] bool RunUntil(const std::function<bool()>& met, Micros patience = Seconds(120));
  // Until no hint is left, nobody fills, and each node's last comparisons found all equal. Fails the test
  // when that takes longer than two minutes, or when replicas of a row differ nevertheless.
  void Quiesce();
  // Weeks by all wall clocks, with a minute of each day lived through.
  void PassWeeks(int weeks);
  // Until no disk holds anything that a stable cut may let go. False when that takes over two minutes.
  [[nodiscard]] bool RunUntilCollected();

  // Another layout becomes active beside the one of now: nobody knows it before the cluster runs. The members
  // take their steps as fast as their lanes do; those that are down are not waited for.
  void BeginMove(Layout next);
  // Goes back, in mid-movement.
  void AbortMove();
  bool moving() const { return layouts_.moving(); }
  // Runs until the layout before has retired, and what nobody is given any more is dropped.
  [[nodiscard]] bool RunUntilMoved(Micros patience = Seconds(120));
  // With these tokens for all: hashed, so many each.
  Layout WithMembers(const std::vector<size_t>& members) const;

  // What goes wrong.
  void Kill(size_t node);
  void Start(size_t node);
  // No message passes between these nodes and the others, until Mend.
  void Part(const std::set<size_t>& side);
  void Mend();
  // Looked at for each message: false loses it.
  using Filter = std::function<bool(size_t from, size_t to, const Message& message)>;
  void SetFilter(Filter filter) { filter_ = std::move(filter); }
  // How long each message takes.
  using Delay = std::function<Micros(size_t from, size_t to, const Message& message)>;
  void SetDelay(Delay delay) { delay_ = std::move(delay); }
  // Told of each row that became durable, hints left out.
  using Durable = std::function<void(size_t node, const std::string& row_key)>;
  void OnDurable(Durable told) { durable_ = std::move(told); }
  // A replica gets this record as if another had repaired it, and it is durable.
  void Inject(size_t node, const std::string& row_key, const Record& record);

  // Calls of clients. Those that return a result run the cluster until it is there.
  using Done = std::function<void(const CallResult& result)>;
  void AskLater(size_t node, Call call, Done done, Micros timeout = Seconds(2));
  CallResult Ask(size_t node, Call call, Micros timeout = Seconds(2));
  // These fail the test when the call fails. A write returns its context.
  std::string Put(size_t node, PutCall put);
  std::string Delete(size_t node, DeleteCall call);
  GetResult Get(size_t node, GetCall get);
  std::vector<std::string> Values(size_t node, const std::string& key, ReplicaCount r = kAll);  // sorted
  std::map<std::string, std::vector<std::string>> ScanAll(size_t node);

  size_t size() const { return nodes_.size(); }
  sim::SimNode& node(size_t index) { return *nodes_[index]; }
  bool alive(size_t index) const { return nodes_[index]->alive(); }
  const Node& core(size_t index) const { return nodes_[index]->lane().node(); }
  const View& view() const { return *view_; }
  std::string RowKeyOf(const std::string& key, const std::string& keyspace = "default") const;
  std::vector<size_t> ReplicasOf(const std::string& key, const std::string& keyspace = "default") const;
  // As on the node's disk; nothing of a row that is not there.
  Record OnDisk(size_t node, const std::string& key);
  size_t RowsOnDisk(size_t node, Table table = Table::kRows);
  uint64_t HintsHeld() const;
  // The stable cut that all members held, as far as the node knows.
  uint64_t CutOfAll(size_t node) const { return core(node).replica().cuts().all; }
  // Messages between nodes, so far.
  uint64_t repairs() const { return repairs_; }  // records that read repair or anti-entropy sent
  const std::map<std::string, int>& deliveries() const { return deliveries_; }  // of hints, by row key

 private:
  void Sent(sim::SimNode& from, NodeId to, LayoutMark layout, std::vector<Message> batch) override;
  void Replied(sim::SimNode& from, std::vector<Outbox::Reply> replies) override;
  void LayoutWanted(sim::SimNode& node, NodeId) override { node.Push(NewLayouts{layouts_}); }
  void RecordSeen(sim::SimNode&, const std::string&, const RecordBytes&) override {}
  void RowDurable(sim::SimNode& node, const std::string& row_key, const RecordBytes&,
                  const RecordBytes&) override {
    if (durable_) durable_(IndexOf(node.id()), row_key);
  }
  void TurnEnded(sim::SimNode&) override {}

  void StepLayouts();
  void TellLayouts();
  bool All(const std::function<bool(const LaneSteps& steps)>& done) const;
  bool Whole(size_t a, size_t b) const;
  void NoticeSoon();
  void Notice();
  size_t IndexOf(NodeId id) const { return static_cast<size_t>(id.value) - 1; }
  bool Quiet() const;
  void ExpectEqualReplicas();

  sim::World world_;
  const sim::Weather calm_;
  std::shared_ptr<const View> view_;
  Layouts layouts_;  // of the nodes that know the newest
  std::vector<std::unique_ptr<sim::SimNode>> nodes_;
  std::set<std::pair<size_t, size_t>> cut_;       // (a, b) with a < b
  std::set<std::pair<size_t, size_t>> believed_;  // (a, b) with a < b: they hold each other for up
  Filter filter_;
  Delay delay_;
  Durable durable_;
  uint64_t last_ticket_ = 0;
  std::map<uint64_t, Done> waiting_;
  uint64_t repairs_ = 0;
  std::map<std::string, int> deliveries_;
};

}  // namespace gyre::cases
