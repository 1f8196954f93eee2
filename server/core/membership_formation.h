// Forming a cluster: one promise in a node's life, and what all the promises make.
//
// Why two clusters never form out of overlapping nodes: a cluster forms of a set when each of its nodes has
// durably promised exactly that set, and no node promises twice.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/core/layout.h"
#include "server/core/membership_messages.h"

namespace gyre {

// False unless the nodes are usable, sorted by id, and as many as bootstrap_expect says.
bool IsWellFormed(const control::FormationPromise& promise);

class Formation {
 public:
  using Known = std::map<NodeId, NodeInfoValue>;

  // REQUIRES: expect >= 1.
  Formation(NodeId self, int expect) : self_(self), expect_(expect) {}
  // Takes over the promise of an earlier life. False when it is not one of this node.
  bool Remember(control::FormationPromise promise);

  // A node said itself which K it was started with. REQUIRES: the node is in the address book (which bounds
  // this).
  void HeardExpect(NodeId node, int expect) { expects_[node] = expect; }
  // A node is in a cluster: it is nobody to form one with. A node that is new where as many are known as it
  // expects, one of them dead, would else promise in vain, and for ever.
  void HeardOfLayout(NodeId node) { expects_.erase(node); }
  void HeardPromise(NodeId from, const control::FormationPromise& promise);

  // Promises, if it has not yet and knows exactly K nodes that all name the same K. True when it promised
  // just now: then promise() must be durable before anybody hears of it.
  bool TryPromise(const Known& known);
  const std::optional<control::FormationPromise>& promise() const { return promise_; }
  // The id of the cluster that the promise is for; 0 without one.
  uint64_t cluster_id() const { return cluster_id_; }

  // The first layout, when all have promised the same. A function of what each promised of itself, and of
  // nothing else: zone and weight of a node are those in its own promise, whatever it says later.
  std::optional<Layout> Formed() const;

  // One sentence: what keeps the cluster from forming, and what to do about it.
  std::string Obstacle(const Known& known) const;

 private:
  void Promise(control::FormationPromise promise);
  const NodeInfoValue* Disagreeing(const Known& known) const;
  bool TokensFit(const Known& known) const;

  NodeId self_;
  int expect_;
  std::map<NodeId, int> expects_;                     // of other nodes, as they said in this life
  std::optional<control::FormationPromise> promise_;  // ours
  uint64_t cluster_id_ = 0;
  std::map<NodeId, FirstMember> promised_;               // who promised the same set, as it promised itself
  std::map<NodeId, std::vector<NodeInfoValue>> others_;  // who of our set promised another
};

}  // namespace gyre
