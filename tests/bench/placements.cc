// The schemes, each as its authors describe it.
#include "tests/bench/placements.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <map>
#include <utility>

#include "ring/allocator.h"
#include "ring/balanced.h"
#include "ring/ring.h"

namespace gyre {
namespace {

std::vector<NodeId> Plus(std::vector<NodeId> nodes, NodeId node) {
  nodes.push_back(node);
  return nodes;
}

std::vector<NodeId> Minus(std::vector<NodeId> nodes, NodeId node) {
  std::erase(nodes, node);
  return nodes;
}

// A well mixed function of two numbers: the last steps of MurmurHash3.
uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a ^ (b * 0x9e3779b97f4a7c15);
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

// A scheme that is a function of the list of nodes alone.
template <typename Scheme>
class OfNodes : public Placed {
 public:
  explicit OfNodes(std::vector<NodeId> nodes) : nodes_(std::move(nodes)) {}
  size_t state_bytes() const override { return 0; }
  std::unique_ptr<Placed> With(NodeId node) const override {
    return std::make_unique<Scheme>(Plus(nodes_, node));
  }
  std::unique_ptr<Placed> Without(NodeId node) const override {
    return std::make_unique<Scheme>(Minus(nodes_, node));
  }

 protected:
  const std::vector<NodeId> nodes_;
};

class Modulo : public OfNodes<Modulo> {
 public:
  using OfNodes::OfNodes;
  NodeId NodeOf(Token key) const override { return nodes_[key.value % nodes_.size()]; }
};

// Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998: the highest score wins.
class Rendezvous : public OfNodes<Rendezvous> {
 public:
  using OfNodes::OfNodes;
  NodeId NodeOf(Token key) const override {
    return *std::ranges::max_element(nodes_, {}, [&](NodeId node) { return Mix(key.value, node.value); });
  }
};

// Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", 2014. Nodes are numbered by their
// place in the list, so one that leaves from the middle renumbers those behind it.
class Jump : public OfNodes<Jump> {
 public:
  using OfNodes::OfNodes;
  NodeId NodeOf(Token key) const override {
    uint64_t random = key.value;
    int64_t bucket = 0;
    for (int64_t next = 0; next < static_cast<int64_t>(nodes_.size());) {
      bucket = next;
      random = random * 2862933555777941757 + 1;
      next =
          static_cast<int64_t>(static_cast<double>(bucket + 1) * (static_cast<double>(int64_t{1} << 31) /
                                                                  static_cast<double>((random >> 33) + 1)));
    }
    return nodes_[static_cast<size_t>(bucket)];
  }
};

// Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016, section 3.4:
// nodes take turns to claim the first free entry of their own permutation of the table.
class Maglev : public OfNodes<Maglev> {
 public:
  explicit Maglev(std::vector<NodeId> nodes) : OfNodes(std::move(nodes)), table_(kEntries, kFree) {
    std::vector<uint64_t> next(nodes_.size());
    for (size_t filled = 0; filled < kEntries;) {
      for (size_t i = 0; i < nodes_.size() && filled < kEntries; ++i, ++filled) {
        const uint64_t offset = Mix(nodes_[i].value, 1) % kEntries;
        const uint64_t skip = Mix(nodes_[i].value, 2) % (kEntries - 1) + 1;
        while (table_[(offset + next[i] * skip) % kEntries] != kFree) ++next[i];
        table_[(offset + next[i] * skip) % kEntries] = static_cast<uint16_t>(i);
      }
    }
  }
  NodeId NodeOf(Token key) const override { return nodes_[table_[key.value % kEntries]]; }
  size_t state_bytes() const override { return table_.size() * sizeof(table_[0]); }

 private:
  static constexpr size_t kEntries = 65537;  // a prime, some hundred times the nodes
  static constexpr uint16_t kFree = UINT16_MAX;
  std::vector<uint16_t> table_;
};

// As Redis Cluster: an operator gives slots to nodes; here so that all have the same number but for one, and
// that as few move as can.
class Slots : public Placed {
 public:
  explicit Slots(const std::vector<NodeId>& nodes) : owners_(kSlotCount) {
    for (size_t i = 0; i < kSlotCount; ++i) owners_[i] = nodes[i * nodes.size() / kSlotCount];
  }
  NodeId NodeOf(Token key) const override { return owners_[key.value % kSlotCount]; }
  size_t state_bytes() const override { return kSlotCount * sizeof(uint16_t); }

  std::unique_ptr<Placed> With(NodeId node) const override {
    auto next = std::make_unique<Slots>(*this);
    std::map<NodeId, size_t> counts = next->Counts();
    for (size_t taken = 0; taken < kSlotCount / (counts.size() + 1); ++taken) {
      const NodeId fullest = std::ranges::max_element(counts, {}, &Count::second)->first;
      *std::ranges::find(next->owners_, fullest) = node;
      --counts[fullest];
    }
    return next;
  }
  std::unique_ptr<Placed> Without(NodeId node) const override {
    auto next = std::make_unique<Slots>(*this);
    std::map<NodeId, size_t> counts = next->Counts();
    counts.erase(node);
    for (NodeId& owner : next->owners_) {
      if (owner != node) continue;
      owner = std::ranges::min_element(counts, {}, &Count::second)->first;
      ++counts[owner];
    }
    return next;
  }

 private:
  static constexpr size_t kSlotCount = 16384;
  using Count = std::pair<const NodeId, size_t>;
  std::map<NodeId, size_t> Counts() const {
    std::map<NodeId, size_t> counts;
    for (const NodeId owner : owners_) ++counts[owner];
    return counts;
  }
  std::vector<NodeId> owners_;  // by slot
};

// The product's ring, with a number of hashed tokens or with balanced ones.
constexpr size_t kBalanced = 0;

template <size_t tokens>
class OnRing : public Placed {
 public:
  explicit OnRing(const std::vector<NodeId>& nodes) : OnRing(nullptr, nodes) {}
  NodeId NodeOf(Token key) const override { return ring_.members()[ring_.Preferences(key).front()].id; }
  // Tokens and preference lists.
  size_t state_bytes() const override {
    return ring_.arc_count() * (sizeof(Token) + ring_.PreferencesOfArc(0).size() * sizeof(MemberIndex));
  }
  std::unique_ptr<Placed> With(NodeId node) const override {
    return std::unique_ptr<Placed>(new OnRing(this, Plus(Nodes(), node)));
  }
  std::unique_ptr<Placed> Without(NodeId node) const override {
    return std::unique_ptr<Placed>(new OnRing(this, Minus(Nodes(), node)));
  }

 private:
  OnRing(const OnRing* before, const std::vector<NodeId>& nodes) : ring_(Build(before, nodes)) {}

  static Ring Build(const OnRing* before, const std::vector<NodeId>& nodes) {
    std::vector<Member> members;
    for (const NodeId node : nodes) {
      const int was = before == nullptr ? -1 : before->ring_.IndexOf(node);
      members.push_back(was >= 0 ? before->ring_.members()[static_cast<size_t>(was)]
                                 : Member{.id = node, .zone = "", .tokens = {}});
    }
    if (tokens == kBalanced) {
      // For one replica, as the others have no more.
      members = BalancedTokens(before == nullptr ? std::span<const Member>() : before->ring_.members(),
                               std::move(members), 1);
    } else {
      for (Member& member : members) member.tokens = HashedTokens(member.id, tokens);
    }
    auto ring = Ring::Build(std::move(members));
    if (!ring.ok()) std::abort();
    return *std::move(ring);
  }
  std::vector<NodeId> Nodes() const {
    std::vector<NodeId> nodes;
    for (const Member& member : ring_.members()) nodes.push_back(member.id);
    return nodes;
  }

  Ring ring_;
};

template <typename Scheme>
std::unique_ptr<Placed> Make(std::vector<NodeId> nodes) {
  return std::make_unique<Scheme>(std::move(nodes));
}

}  // namespace

const std::vector<PlacementScheme>& PlacementSchemes() {
  static const std::vector<PlacementScheme> schemes = {
      {kModulo, Make<Modulo>, "the ordered list of nodes"},
      {kOneToken, Make<OnRing<1>>, "the nodes"},
      {kHashedRing, Make<OnRing<128>>, "the nodes"},
      {kBalancedRing, Make<OnRing<kBalanced>>, "the nodes and their tokens"},
      {kRendezvous, Make<Rendezvous>, "the nodes; a hash of each for each lookup"},
      {kJump, Make<Jump>, "the number of nodes, which come and go at the end only"},
      {kMaglev, Make<Maglev>, "the ordered list of nodes, and to fill the table"},
      {kSlots, Make<Slots>, "the owner of each slot, which someone must decide"},
  };
  return schemes;
}

const PlacementScheme& SchemeNamed(std::string_view name) {
  const auto found = std::ranges::find(PlacementSchemes(), name, &PlacementScheme::name);
  assert(found != PlacementSchemes().end());
  return *found;
}

}  // namespace gyre
