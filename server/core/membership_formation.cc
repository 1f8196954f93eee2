// Forming a cluster.
#include "server/core/membership_formation.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "ring/allocator.h"
#include "server/core/membership_book.h"

namespace gyre {
namespace {

constexpr size_t kNamesInSentenceMax = 16;

std::string NameOf(const NodeInfoValue& node) { return ToString(node.id) + " at " + node.peer_address; }

std::string NamesOf(const std::vector<NodeInfoValue>& nodes) {
  std::string names;
  for (size_t i = 0; i < std::min(nodes.size(), kNamesInSentenceMax); ++i) {
    names += (i == 0 ? "" : ", ") + NameOf(nodes[i]);
  }
  if (nodes.size() > kNamesInSentenceMax) {
    names += " and " + std::to_string(nodes.size() - kNamesInSentenceMax) + " more";
  }
  return names;
}

std::vector<NodeInfoValue> Listed(const Formation::Known& known) {
  std::vector<NodeInfoValue> nodes;
  for (const auto& [id, info] : known) nodes.push_back(info);
  return nodes;
}

std::vector<NodeId> IdsOf(const std::vector<NodeInfoValue>& nodes) {
  std::vector<NodeId> ids;
  for (const NodeInfoValue& node : nodes) ids.push_back(node.id);
  return ids;
}

const NodeInfoValue* Find(const std::vector<NodeInfoValue>& nodes, NodeId id) {
  const auto found = std::ranges::find(nodes, id, &NodeInfoValue::id);
  return found == nodes.end() ? nullptr : &*found;
}

constexpr const char* kStartAgain =
    " No data is stored yet: stop them, remove their data directories and start just those that belong "
    "together.";

}  // namespace

bool IsWellFormed(const control::FormationPromise& promise) {
  const auto out_of_order = [](const NodeInfoValue& a, const NodeInfoValue& b) { return a.id >= b.id; };
  return promise.bootstrap_expect >= 1 && promise.nodes.size() <= Ring::kMembersMax &&
         promise.nodes.size() == static_cast<size_t>(promise.bootstrap_expect) &&
         std::ranges::all_of(promise.nodes, IsUsable) &&
         std::ranges::adjacent_find(promise.nodes, out_of_order) == promise.nodes.end();
}

bool Formation::Remember(control::FormationPromise promise) {
  if (!IsWellFormed(promise) || Find(promise.nodes, self_) == nullptr) return false;
  Promise(std::move(promise));
  return true;
}

void Formation::Promise(control::FormationPromise promise) {
  assert(!promise_);
  promise_ = std::move(promise);
  cluster_id_ = ClusterIdOf(IdsOf(promise_->nodes));
  HeardPromise(self_, *promise_);
}

void Formation::HeardPromise(NodeId from, const control::FormationPromise& promise) {
  const NodeInfoValue* const sender = Find(promise.nodes, from);
  if (!promise_ || !IsWellFormed(promise) || sender == nullptr || Find(promise_->nodes, from) == nullptr)
    return;
  if (IdsOf(promise.nodes) == IdsOf(promise_->nodes)) {
    promised_.try_emplace(from, FirstMember{from, sender->zone, sender->weight});
  } else {
    others_[from] = promise.nodes;
  }
}

// A node that named another K than this one, or nullptr.
const NodeInfoValue* Formation::Disagreeing(const Known& known) const {
  for (const auto& [id, info] : known) {
    const auto expect = expects_.find(id);
    if (expect != expects_.end() && expect->second != expect_) return &info;
  }
  return nullptr;
}

bool Formation::TokensFit(const Known& known) const {
  size_t tokens = 0;
  for (const auto& [id, info] : known) tokens += TokensOfWeight(info.weight);
  return tokens >= 1 && tokens <= Ring::kTokensMax;
}

bool Formation::TryPromise(const Known& known) {
  if (promise_ || known.size() != static_cast<size_t>(expect_) || known.size() > Ring::kMembersMax)
    return false;
  const auto agrees = [&](const auto& entry) {
    const auto expect = expects_.find(entry.first);
    return entry.first == self_ || (expect != expects_.end() && expect->second == expect_);
  };
  if (!std::ranges::all_of(known, agrees) || !TokensFit(known)) return false;
  Promise({expect_, Listed(known)});
  return true;
}

std::optional<Layout> Formation::Formed() const {
  if (!promise_ || promised_.size() < promise_->nodes.size()) return std::nullopt;
  std::vector<FirstMember> members;
  size_t tokens = 0;
  for (const auto& [id, member] : promised_) {
    members.push_back(member);
    tokens += TokensOfWeight(member.weight);
  }
  if (tokens < 1 || tokens > Ring::kTokensMax) return std::nullopt;
  return FirstLayout(std::move(members));
}

std::string Formation::Obstacle(const Known& known) const {
  const std::string expect = std::to_string(expect_);
  if (!others_.empty()) {
    const auto& [id, nodes] = *others_.begin();
    return "Node " + NameOf(*Find(nodes, id)) + " has promised to form a cluster of " + NamesOf(nodes) +
           ", but this node one of " + NamesOf(promise_->nodes) + ": neither can form." + kStartAgain;
  }
  if (promise_) {
    std::vector<NodeInfoValue> missing;
    for (const NodeInfoValue& node : promise_->nodes) {
      if (!promised_.contains(node.id)) missing.push_back(node);
    }
    if (missing.empty()) {
      return "All nodes have promised to form a cluster of " + NamesOf(promise_->nodes) +
             ", but the weights they were started with make no ring: no cluster can form." + kStartAgain;
    }
    return "This node has promised to form a cluster of " + std::to_string(promise_->nodes.size()) +
           " nodes (" + NamesOf(promise_->nodes) + ") and waits for the promises of " + NamesOf(missing) +
           "; if one of them is lost for good, this cluster cannot form:" + kStartAgain;
  }
  if (const NodeInfoValue* const node = Disagreeing(known); node != nullptr) {
    return "Node " + NameOf(*node) +
           " was started with cluster.bootstrap_expect = " + std::to_string(expects_.at(node->id)) +
           ", but this node with " + expect +
           ": no cluster is formed. Set the same number on all nodes and restart them.";
  }
  const std::string known_names =
      std::to_string(known.size()) + " nodes are known (" + NamesOf(Listed(known)) + ")";
  if (known.size() > static_cast<size_t>(expect_)) {
    return known_names + ", but cluster.bootstrap_expect is " + expect +
           ": no cluster is formed. If all of them " + "belong to it, set the number to " +
           std::to_string(known.size()) + " on all and restart them." + kStartAgain;
  }
  if (known.size() == static_cast<size_t>(expect_) && !TokensFit(known)) {
    return known_names +
           ", but their weights make no ring: no cluster is formed. Choose weights of 1 or little more.";
  }
  return known_names + " of the " + expect +
         " that cluster.bootstrap_expect asks for; waiting to hear from all.";
}

}  // namespace gyre
