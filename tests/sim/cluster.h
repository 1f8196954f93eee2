// A simulated cluster: nodes, the network between them, what goes wrong, and the clients' way in.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/core/replica_set.h"
#include "tests/sim/control.h"
#include "tests/sim/invariants.h"
#include "tests/sim/node.h"

namespace gyre::sim {

class Cluster final : private SimNode::Host, private SimControl::Host {
 public:
  // `nodes` == 0: chance decides.
  Cluster(World& world, int nodes);

  struct Question {
    size_t node = 0;
    Call call;
    Micros timeout;
    std::function<void(const CallResult&)>
        answered;  // at the moment the node answers: what is durable now counts
    std::function<void(const CallResult*)> done;  // once, later: nullptr when the client will never know
  };
  void Ask(Question question);

  // Lets things go wrong until `end`, then ends every fault.
  // Told before a node loses its disk.
  void OnDiskLost(std::function<void()> told) { disk_lost_ = std::move(told); }
  void BeginFaults(Micros end);
  void Heal();
  // Until it is there; then `done`.
  void AddKeyspace(KeyspaceSpec keyspace, std::function<void()> done);
  // Every node knows the newest layout, no data moves, and nothing is left where it does not belong. Else a
  // sentence.
  std::string Unsettled();
  std::string Progress();

  size_t size() const { return nodes_.size(); }
  SimNode& node(size_t index) { return *nodes_[index]; }
  // The newest layout that any node knows.
  const View& view();
  size_t first_members() const { return first_members_; }
  std::vector<SimNode*> Nodes() const {
    std::vector<SimNode*> nodes;
    for (const auto& node : nodes_) nodes.push_back(node.get());
    return nodes;
  }
  // Without those that were removed for good.
  std::vector<SimNode*> Living() const;
  std::vector<SimNode*> Members();
  size_t AnyLiving() {
    const std::vector<SimNode*> living = Living();
    return IndexOf(living[world_.random().Below(living.size())]->id());
  }
  std::vector<SimNode*> ReplicasOf(const std::string& keyspace, const std::string& key);
  // Who may hold a key now: its replicas, but while data moves, or may, anybody.
  std::vector<SimNode*> HoldersOf(const std::string& keyspace, const std::string& key);
  Invariants& invariants() { return invariants_; }

 private:
  struct Waiting {
    SimNode* node = nullptr;
    uint64_t life = 0;
    Question question;
    bool answered = false;
    bool done = false;
  };
  // One direction between two nodes.
  struct Link {
    bool cut = false;
    bool believed = false;  // the first node was told that the second is up
  };

  void Sent(SimNode& from, NodeId to, LayoutMark layout, std::vector<Message> batch) override;
  void Replied(SimNode& from, std::vector<Outbox::Reply> replies) override;
  void LayoutWanted(SimNode& node, NodeId from) override { Control(node).WantLayout(from); }
  void Told(SimNode& from, const std::string& to_address, const control::Message& message) override;
  void Removed(SimNode& node) override;
  void RecordSeen(SimNode& node, const std::string& row_key, const RecordBytes& record) override {
    invariants_.RecordSeen(node, row_key, record);
  }
  void RowDurable(SimNode& node, const std::string& row_key, const RecordBytes& before,
                  const RecordBytes& after) override {
    invariants_.RowDurable(node, row_key, before, after);
  }
  void TurnEnded(SimNode& node) override { invariants_.TurnEnded(node); }

  void Deliver(SimNode& from, size_t to, LayoutMark layout, const std::vector<Message>& batch);
  void CheckAnswered(uint64_t ticket);
  void Finish(uint64_t ticket, const CallResult* result);
  void Start(size_t node);
  void Crash(size_t index, bool with_disk = false);
  void Stop(size_t index, bool with_disk);
  // Members: cluster_members.cc.
  void ChangeMembers();
  void AbortMove(int attempts);
  std::optional<MemberChanges> DrawChanges(const Layout& layout);
  SimControl& Control(const SimNode& node) { return *controls_[IndexOf(node.id())]; }
  void Partition();
  void Mend(const std::vector<std::pair<size_t, size_t>>& cut);
  void NoticeLinks();
  void NoticeLink(size_t a, size_t b);
  bool Reachable(size_t a, size_t b);
  void Repeat(Micros mean, Micros end, const std::function<void()>& what);
  size_t AnyNode() { return world_.random().Below(nodes_.size()); }
  size_t IndexOf(NodeId id) const { return by_id_.at(id); }
  Link& link(size_t a, size_t b) { return links_[a * nodes_.size() + b]; }

  World& world_;
  Weather weather_;
  bool healed_ = false;
  Invariants invariants_;
  std::shared_ptr<const View> view_;
  size_t first_members_ = 0;
  size_t replicas_max_ = 0;  // of any keyspace: so many members there are always
  bool ever_moved_ = false;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::vector<std::unique_ptr<SimControl>> controls_;
  std::vector<bool> gone_;  // removed, for good
  std::map<NodeId, size_t> by_id_;
  std::vector<Link> links_;
  uint64_t last_ticket_ = 0;
  std::map<uint64_t, Waiting> waiting_;
  std::function<void()> disk_lost_;
};

}  // namespace gyre::sim
