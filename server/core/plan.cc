// The layout that an operator's changes lead to.
#include "server/core/plan.h"

#include <absl/status/status.h>
#include <algorithm>
#include <set>
#include <utility>

#include "ring/allocator.h"
#include "ring/balanced.h"
#include "ring/ring_diff.h"
#include "server/core/layout_codec.h"
#include "storage/format/bytes.h"

namespace gyre {
namespace {

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

std::string Name(NodeId node) { return "node " + ToString(node); }

// The tokens of the members `after` a change, in their order. The one place that knows which allocator is in
// use. `replicas`: what most keyspaces have.
std::vector<Member> TokensFor(const std::vector<Member>& before, std::vector<Member> after, size_t replicas) {
  const auto alike = [](const Member& a, const Member& b) { return a.id == b.id && a.weight == b.weight; };
  if (std::ranges::is_permutation(before, after, alike)) return after;  // whoever is where keeps its tokens
  return BalancedTokens(before, std::move(after), replicas);
}

// `count` tokens: those it has and more, or some of those it has.
void SetTokenCount(Member& member, size_t count) {
  std::vector<Token>& tokens = member.tokens;
  if (tokens.size() > count) {
    // Any choice would do that is the same everywhere and spreads what goes over the ring.
    std::ranges::sort(tokens, {}, [](Token token) { return TokenOf(ToString(token)); });
    tokens.resize(count);
  }
  for (size_t more = count; tokens.size() < count; ++more) {
    const std::vector<Token> hashed = HashedTokens(member.id, std::min(more, Ring::kTokensPerMemberMax));
    for (const Token token : hashed) {
      if (tokens.size() < count && std::ranges::find(tokens, token) == tokens.end()) tokens.push_back(token);
    }
    if (more >= Ring::kTokensPerMemberMax) break;
  }
  std::ranges::sort(tokens);
}

// Applies changes to a layout, one kind after the other.
class Changing {
 public:
  Changing(const Layout& base, const MemberChanges& changes) : base_(base), changes_(changes), next_(base) {
    next_.epoch = base.epoch + 1;
    next_.base_digest = DigestOf(base);
    next_.abort = false;
    next_.lost = changes.lost;
  }

  absl::StatusOr<Layout> Run() {
    for (const auto step :
         {&Changing::CheckBase, &Changing::Leave, &Changing::Replace, &Changing::Add, &Changing::SetWeights,
          &Changing::SetZones, &Changing::CheckMembers, &Changing::SetTokens, &Changing::SetReplicas,
          &Changing::CheckLost, &Changing::Finish}) {
      if (absl::Status status = (this->*step)(); !status.ok()) return status;
    }
    return std::move(next_);
  }

 private:
  absl::Status CheckBase() {
    if (IsFinished(base_)) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "the change before this one is just being finished: its nodes are not the voters yet; try again");
  }

  absl::Status Leave() {
    before_ = next_.members;
    for (const NodeId node : changes_.remove) {
      if (absl::Status status = TakeOut(node, "removed"); !status.ok()) return status;
      std::erase_if(next_.members, [&](const Member& member) { return member.id == node; });
    }
    return absl::OkStatus();
  }

  absl::Status Replace() {
    for (const auto& [old, by] : changes_.replace) {
      if (absl::Status status = TakeOut(old, "replaced"); !status.ok()) return status;
      if (absl::Status status = CheckNewcomer(by); !status.ok()) return status;
      for (std::vector<Member>* members : {&next_.members, &before_}) {
        Member& member = *std::ranges::find(*members, old, &Member::id);
        member.id = by.node;
        member.zone = by.zone;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Add() {
    for (const MemberChanges::Newcomer& node : changes_.add) {
      if (absl::Status status = CheckNewcomer(node); !status.ok()) return status;
      next_.members.push_back({.id = node.node, .zone = node.zone, .weight = node.weight, .tokens = {}});
    }
    std::ranges::sort(next_.members, {}, &Member::id);
    return absl::OkStatus();
  }

  absl::Status SetWeights() {
    for (const auto& [node, weight] : changes_.weight) {
      absl::StatusOr<Member*> member = Find(node, "weight");
      if (!member.ok()) return member.status();
      (*member)->weight = weight;
    }
    return absl::OkStatus();
  }

  absl::Status SetZones() {
    for (const auto& [node, zone] : changes_.zone) {
      absl::StatusOr<Member*> member = Find(node, "zone");
      if (!member.ok()) return member.status();
      (*member)->zone = zone;
    }
    return absl::OkStatus();
  }

  absl::Status CheckMembers() {
    if (next_.members.empty()) {
      return Invalid("the plan removes the last node; a cluster must keep at least one");
    }
    if (next_.members.size() > Ring::kMembersMax) {
      return Invalid("there would be " + std::to_string(next_.members.size()) +
                     " nodes; a cluster has at most " + std::to_string(Ring::kMembersMax));
    }
    for (const Member& member : next_.members) {
      if (member.weight < 1 || member.weight > kWeightMax) {
        return Invalid("weight: " + Name(member.id) + " cannot have weight " + std::to_string(member.weight) +
                       "; choose 1 to " + std::to_string(kWeightMax));
      }
      if (member.zone.size() > kZoneBytesMax) {
        return Invalid("zone: the name for " + Name(member.id) + " has " +
                       std::to_string(member.zone.size()) + " bytes; at most " +
                       std::to_string(kZoneBytesMax) + " are allowed");
      }
    }
    return absl::OkStatus();
  }

  absl::Status SetTokens() {
    // Looked at before they are chosen, which takes its time.
    const Tokens expected = ExpectedTokens();
    if (expected.all > Ring::kTokensMax) {
      return Invalid("tokens: all nodes together would have about " + std::to_string(expected.all) +
                     "; at most " + std::to_string(Ring::kTokensMax) + " are possible: lower weights");
    }
    if (expected.chosen > kTokensChosenMax) {
      return Invalid("tokens: about " + std::to_string(expected.chosen) +
                     " would have to be chosen; at most " + std::to_string(kTokensChosenMax) +
                     " are possible by one plan: change fewer nodes at a time, or choose lower weights");
    }
    next_.members = TokensFor(before_, std::move(next_.members), UsualReplicas());
    for (const auto& [node, count] : changes_.tokens) {
      absl::StatusOr<Member*> member = Find(node, "tokens");
      if (!member.ok()) return member.status();
      if (count < 1 || count > Ring::kTokensPerMemberMax) {
        return Invalid("tokens: " + Name(node) + " cannot have " + std::to_string(count) +
                       " tokens; choose 1 to " + std::to_string(Ring::kTokensPerMemberMax));
      }
      SetTokenCount(**member, count);
    }
    return absl::OkStatus();
  }

  absl::Status SetReplicas() {
    for (const auto& [name, n] : changes_.keyspace_n) {
      const auto keyspace = std::ranges::find(next_.keyspaces, name, &KeyspaceSpec::name);
      if (keyspace == next_.keyspaces.end()) return Invalid("there is no keyspace '" + name + "'");
      keyspace->n = n;
      if (const absl::Status status = CheckKeyspace(*keyspace); !status.ok()) {
        return Invalid("keyspace '" + name + "': " + std::string(status.message()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckLost() {
    for (size_t i = 0; i < changes_.lost.size(); ++i) {
      const NodeId node = changes_.lost[i];
      if (!leaving_.contains(node)) {
        return Invalid(Name(node) + " cannot be given up, as it does not leave: remove or replace it");
      }
      if (i > 0 && changes_.lost[i - 1] >= node) {
        return Invalid("who is given up must be sorted by id, each node once");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Finish() {
    if (next_.members == base_.members && next_.keyspaces == base_.keyspaces) {
      return Invalid("the plan changes nothing: the layout is like that already");
    }
    for (const NodeId node : leaving_) {
      if (std::ranges::find(next_.removed, node) == next_.removed.end()) next_.removed.push_back(node);
    }
    std::ranges::sort(next_.removed);
    if (next_.removed.size() > Layout::kRemovedMax) {
      return absl::ResourceExhaustedError("more than " + std::to_string(Layout::kRemovedMax) +
                                          " nodes have left this cluster, and it can remember no more: no "
                                          "further node can be removed or replaced");
    }
    const absl::StatusOr<bool> moves = RowsChangeHands();
    if (!moves.ok()) return moves.status();
    next_.fence = *moves ? next_.epoch : base_.fence;
    if (*moves) return absl::OkStatus();
    next_.voters.clear();
    for (const Member& member : next_.members) next_.voters.push_back(member.id);
    return absl::OkStatus();
  }

  // Marks a member as one that leaves.
  absl::Status TakeOut(NodeId node, const std::string& how) {
    if (std::ranges::find(base_.members, node, &Member::id) == base_.members.end()) {
      return Invalid(Name(node) + " cannot be " + how + ", as it is no member; see gyre cluster status");
    }
    if (leaving_.insert(node).second) return absl::OkStatus();
    return Invalid(Name(node) + " is to be removed or replaced twice; name it once");
  }

  absl::Status CheckNewcomer(const MemberChanges::Newcomer& node) {
    if (!node.node) return Invalid("the id 0 names no node");
    if (std::ranges::find(base_.members, node.node, &Member::id) != base_.members.end()) {
      return Invalid(Name(node.node) + " cannot be added, as it is a member already");
    }
    if (std::ranges::binary_search(base_.removed, node.node)) {
      return Invalid(
          Name(node.node) +
          " was a member once and has left, and an id is never used again: give the node a new data "
          "directory");
    }
    if (coming_.insert(node.node).second) return absl::OkStatus();
    return Invalid(Name(node.node) + " is to be added twice; name it once");
  }

  absl::StatusOr<Member*> Find(NodeId node, const std::string& what) {
    const auto member = std::ranges::find(next_.members, node, &Member::id);
    if (member != next_.members.end()) return &*member;
    return Invalid(what + ": " + Name(node) +
                   (leaving_.contains(node) ? " leaves by the same plan; change it or let it go, not both"
                                            : " is no member; see gyre cluster status"));
  }

  // How many tokens there will be, and how many of them are to be chosen: at most, and about.
  struct Tokens {
    size_t all = 0;
    size_t chosen = 0;
  };
  Tokens ExpectedTokens() const {
    size_t tokens = 0;
    size_t weights = 0;
    for (const Member& member : before_) {
      tokens += member.tokens.size();
      weights += member.weight;
    }
    const size_t per_weight = std::max(kBalancedTokensPerWeight, tokens / std::max(weights, size_t{1}) + 1);
    Tokens expected;
    for (const Member& member : next_.members) {
      const auto was = std::ranges::find(before_, member.id, &Member::id);
      const bool stays = was != before_.end() && was->weight == member.weight;
      const size_t count =
          stays ? member.tokens.size() : std::min(member.weight * per_weight, Ring::kTokensPerMemberMax);
      const auto wanted = changes_.tokens.find(member.id);
      expected.all += wanted == changes_.tokens.end() ? count : std::max<size_t>(wanted->second, count);
      if (!stays) expected.chosen += count;
    }
    return expected;
  }

  // The number of replicas that most keyspaces have.
  size_t UsualReplicas() const {
    std::map<int, int> times;
    for (const KeyspaceSpec& keyspace : base_.keyspaces) ++times[keyspace.n];
    const auto most = std::ranges::max_element(times, {}, [](const auto& entry) { return entry.second; });
    return most == times.end() ? 1 : static_cast<size_t>(most->first);
  }

  absl::StatusOr<bool> RowsChangeHands() const {
    const absl::StatusOr<Ring> before = Ring::Build(base_.members);
    if (!before.ok()) return before.status();
    const absl::StatusOr<Ring> after = Ring::Build(next_.members);
    if (!after.ok()) return after.status();
    std::set<std::pair<int, int>> seen;
    for (size_t i = 0; i < next_.keyspaces.size(); ++i) {
      const int n_before = base_.keyspaces[i].n;
      const int n_after = next_.keyspaces[i].n;
      if (!seen.insert({n_before, n_after}).second) continue;
      const std::vector<RingChange> changes =
          DiffRings({*before, static_cast<size_t>(n_before)}, {*after, static_cast<size_t>(n_after)});
      if (std::ranges::any_of(changes, [](const RingChange& c) { return !c.replacements.empty(); }))
        return true;
    }
    return false;
  }

  static constexpr size_t kTokensChosenMax = 8192;  // by one plan: some seconds of work

  const Layout& base_;
  const MemberChanges& changes_;
  Layout next_;
  std::vector<Member> before_;  // the base's, with newcomers in the place of those whom they replace
  std::set<NodeId> leaving_;
  std::set<NodeId> coming_;
};

}  // namespace

bool IsFinished(const Layout& layout) {
  return std::ranges::equal(layout.members, layout.voters, {}, &Member::id);
}

absl::StatusOr<Layout> WithMembers(const Layout& base, const MemberChanges& changes) {
  return Changing(base, changes).Run();
}

uint64_t PlanHash(const Layout& next) {
  Layout planned = next;
  planned.lost.clear();
  return DigestOf(planned);
}

}  // namespace gyre
