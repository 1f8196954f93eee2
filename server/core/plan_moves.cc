// What a change of the layout moves, and what may be lost by it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

#include "ring/ownership.h"
#include "ring/ring_diff.h"
#include "server/core/plan.h"

namespace gyre {
namespace {

constexpr size_t kSentencesMax = 16;  // of one kind

std::string Percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * fraction);
  return text;
}

std::string Name(NodeId node) { return "node " + ToString(node); }

std::string Names(const std::vector<NodeId>& nodes) {
  std::string text;
  for (const NodeId node : nodes) text += (text.empty() ? "" : ", ") + ToString(node);
  return text;
}

std::string Many(size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Of one keyspace: how thick its rows lie on the ring, by what the nodes say of themselves.
class Densities {
 public:
  Densities(const Ring& ring, const KeyspaceSpec& keyspace, const ClusterStatistics& statistics) {
    const std::vector<Share> shares = SharesOf(ring, static_cast<size_t>(keyspace.n));
    double positions = 0;
    Density all;
    for (size_t i = 0; i < shares.size(); ++i) {
      const auto node = statistics.find(ring.members()[i].id);
      if (node == statistics.end() || shares[i].replicated == 0) continue;
      const auto totals = node->second.rows.find(keyspace.id);
      if (totals == node->second.rows.end()) continue;
      const auto rows = static_cast<double>(totals->second.rows);
      const auto bytes = static_cast<double>(totals->second.bytes);
      const auto width = static_cast<double>(shares[i].replicated);
      of_node_[node->first] = {rows / width, bytes / width};
      positions += width;
      all.rows += rows;
      all.bytes += bytes;
    }
    if (positions > 0) of_all_ = {all.rows / positions, all.bytes / positions};
  }

  struct Density {
    double rows = 0;  // of one position
    double bytes = 0;
  };
  // Of one that says nothing: as thick as with the others.
  Density Of(NodeId node) const {
    const auto found = of_node_.find(node);
    return found == of_node_.end() ? of_all_ : found->second;
  }
  bool Knows(NodeId node) const { return of_node_.contains(node); }

 private:
  std::map<NodeId, Density> of_node_;
  Density of_all_;
};

// The largest share over the one that its weight asks for.
double Unevenness(const Ring& ring, const std::vector<Share>& shares, Positions Share::*which) {
  double weights = 0;
  double positions = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    weights += ring.members()[i].weight;
    positions += static_cast<double>(shares[i].*which);
  }
  double most = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    most = std::max(most, static_cast<double>(shares[i].*which) / ring.members()[i].weight);
  }
  return most * weights / positions;
}

Balance BalanceOf(const View& view) {
  const KeyspaceSpec* keyspace = view.Keyspace("default");
  if (keyspace == nullptr && !view.layout.keyspaces.empty()) keyspace = &view.layout.keyspaces.front();
  const std::vector<Share> shares =
      SharesOf(view.ring, keyspace == nullptr ? 1 : static_cast<size_t>(keyspace->n));
  return {Unevenness(view.ring, shares, &Share::owned), Unevenness(view.ring, shares, &Share::replicated)};
}

// How many replicas of a range must be readable for a change that one of them leaves by: a quorum, one of
// every set that acknowledged a write, and one of every set that a read may have asked.
size_t ReadersNeeded(const KeyspaceSpec& keyspace, size_t replicas) {
  size_t needed = std::min(static_cast<size_t>(keyspace.n / 2 + 1), replicas);
  for (const ReplicaCount& count : {keyspace.r, keyspace.w}) {
    const auto answers = static_cast<size_t>(std::max(CountOf(count, keyspace.n), 1));
    if (answers <= replicas) needed = std::max(needed, replicas - answers + 1);
  }
  return needed;
}

class Planning {
 public:
  Planning(const View& base, const View& next, const MemberChanges& changes,
           const ClusterStatistics& statistics)
      : base_(base), next_(next), changes_(changes), statistics_(statistics) {
    for (const NodeId node : changes.remove) leaving_.insert(node);
    for (const auto& replacement : changes.replace) leaving_.insert(replacement.old);
  }

  void Run(Plan& plan) {
    for (size_t i = 0; i < base_.layout.keyspaces.size(); ++i) {
      LookAt(base_.layout.keyspaces[i], next_.layout.keyspaces[i], plan);
    }
    for (const auto& [link, move] : moves_) {
      plan.moves.push_back({.from = link.first,
                            .to = link.second,
                            .ranges = move.ranges,
                            .rows = {.rows = static_cast<uint64_t>(std::llround(move.rows)),
                                     .bytes = static_cast<uint64_t>(std::llround(move.bytes))}});
    }
    for (const NodeId node : leaving_) {
      if (!Up(node)) plan.leaving_down.push_back(node);
    }
    plan.before = BalanceOf(base_);
    plan.after = BalanceOf(next_);
    WarnOfNodes(plan);
    WarnOfReplacements(plan);
    for (const KeyspaceSpec& keyspace : next_.layout.keyspaces) WarnOfReplicas(keyspace, plan);
  }

 private:
  struct Moved {
    uint64_t ranges = 0;
    double rows = 0;
    double bytes = 0;
  };
  struct Endangered {
    double width = 0;
    double rows = 0;
    size_t needed = 0;
  };

  bool Up(NodeId node) const {
    const auto found = statistics_.find(node);
    return found != statistics_.end() && found->second.up;
  }
  bool Readable(NodeId node) const { return Up(node) && !statistics_.at(node).filling; }

  // Whom a newcomer asks for the rows: whom it replaces, or else the first replica that can be asked.
  NodeId GiverOf(const RingChange& change, NodeId leaver) const {
    if (leaver && Readable(leaver)) return leaver;
    const auto giver = std::ranges::find_if(change.before, [&](NodeId node) { return Readable(node); });
    if (giver != change.before.end()) return *giver;
    return leaver ? leaver : change.before.front();
  }

  void LookAt(const KeyspaceSpec& before, const KeyspaceSpec& after, Plan& plan) {
    const Densities densities(base_.ring, before, statistics_);
    std::map<std::vector<NodeId>, Endangered> endangered;  // by who cannot be read, sorted
    const std::vector<RingChange> changes =
        DiffRings({base_.ring, static_cast<size_t>(before.n)}, {next_.ring, static_cast<size_t>(after.n)});
    for (const RingChange& change : changes) {
      for (const Replacement& replacement : change.replacements) {
        if (!replacement.newcomer) continue;
        const NodeId giver = GiverOf(change, replacement.leaver);
        Moved& moved = moves_[{giver, replacement.newcomer}];
        const Densities::Density density = densities.Of(giver);
        ++moved.ranges;
        moved.rows += density.rows * static_cast<double>(change.width());
        moved.bytes += density.bytes * static_cast<double>(change.width());
        if (!densities.Knows(giver)) uncounted_.insert(giver);
      }
      Endanger(before, change, densities, endangered);
    }
    TellLoss(before, endangered, plan);
  }

  void Endanger(const KeyspaceSpec& keyspace, const RingChange& change, const Densities& densities,
                std::map<std::vector<NodeId>, Endangered>& endangered) const {
    std::vector<NodeId> away;
    for (const NodeId node : change.before) {
      if (!Readable(node)) away.push_back(node);
    }
    if (std::ranges::none_of(change.before, [&](NodeId node) { return leaving_.contains(node); })) return;
    const size_t needed = ReadersNeeded(keyspace, change.before.size());
    if (change.before.size() - away.size() >= needed) return;
    const auto width = static_cast<double>(change.width());
    std::ranges::sort(away);
    Endangered& of_them = endangered[away];
    of_them.width += width;
    of_them.rows += densities.Of(change.before.front()).rows * width;
    of_them.needed = std::max(of_them.needed, needed);
  }

  void TellLoss(const KeyspaceSpec& keyspace, const std::map<std::vector<NodeId>, Endangered>& endangered,
                Plan& plan) const {
    size_t said = 0;
    for (const auto& [away, range] : endangered) {
      if (said++ == kSentencesMax) {
        plan.loss.push_back("keyspace '" + keyspace.name + "': and " +
                            Many(endangered.size() - kSentencesMax, "more set") + " of nodes");
        return;
      }
      const double fraction = std::ldexp(range.width, -64);
      plan.loss.push_back("keyspace '" + keyspace.name + "': " + Percent(fraction) + " of the ring, about " +
                          Many(static_cast<size_t>(std::llround(range.rows)), "key") + ", " +
                          "would be left with fewer than the " + Many(range.needed, "readable replica") +
                          " needed, as these are down or have lost their stores: " + Names(away) +
                          "; by force, what only they hold is lost");
    }
  }

  void WarnOfNodes(Plan& plan) const {
    std::set<NodeId> coming;
    for (const auto& node : changes_.add) coming.insert(node.node);
    for (const auto& replacement : changes_.replace) coming.insert(replacement.by.node);
    for (const NodeId node : plan.leaving_down) {
      plan.warnings.push_back(Name(node) + " is down: what it holds is fetched from the other replicas");
    }
    for (const NodeId node : coming) {
      if (!Up(node))
        plan.warnings.push_back(Name(node) + " is not heard of: nothing moves to it until it is");
    }
    for (const Member& member : next_.layout.members) {
      if (coming.contains(member.id)) continue;
      if (!Up(member.id)) {
        plan.warnings.push_back(Name(member.id) +
                                " is down and stays a member: data moves only when it is back");
      } else if (!Readable(member.id)) {
        plan.warnings.push_back(Name(member.id) +
                                " has lost its store and is still filling: data moves only when it is full");
      }
    }
    for (const NodeId node : uncounted_) {
      plan.warnings.push_back(Name(node) +
                              " has not said how many keys it holds: estimates of what it gives " +
                              "rest on the other nodes");
    }
    for (const auto& [node, statistics] : statistics_) {
      if (!statistics.dropping || base_.ring.IndexOf(node) < 0) continue;
      plan.warnings.push_back(
          Name(node) +
          " may still hold copies that a change before took from it: until it has looked for "
          "them, and dropped them, estimates of keys and bytes may be too high");
    }
  }

  void WarnOfReplacements(Plan& plan) const {
    for (const auto& [old, by] : changes_.replace) {
      const Member& was = base_.ring.members()[static_cast<size_t>(base_.ring.IndexOf(old))];
      const Member& is = next_.ring.members()[static_cast<size_t>(next_.ring.IndexOf(by.node))];
      if (is.zone != was.zone) {
        plan.warnings.push_back(Name(by.node) + " is in zone '" + is.zone + "', and " + Name(old) +
                                ", which it replaces, in '" + was.zone +
                                "': keys of other nodes change hands, too");
      }
      if (by.weight != is.weight) {
        plan.warnings.push_back(Name(by.node) + " says that its weight is " + std::to_string(by.weight) +
                                ", and takes over the tokens and the weight " + std::to_string(is.weight) +
                                " of " + Name(old) + "; --weight changes it");
      }
    }
  }

  void WarnOfReplicas(const KeyspaceSpec& keyspace, Plan& plan) const {
    const auto n = static_cast<size_t>(keyspace.n);
    const size_t nodes = next_.layout.members.size();
    const std::string wants = "keyspace '" + keyspace.name + "' wants " + Many(n, "replica");
    if (nodes < n) {
      plan.warnings.push_back(wants + ", and there would be only " + Many(nodes, "node"));
    }
    const size_t zones = ZonesOf(next_);
    const bool used = zones > 1 || ZonesOf(base_) > zones;
    if (used && zones < std::min(n, nodes)) {
      plan.warnings.push_back(wants + ", and there would be only " + Many(zones, "zone") +
                              ": replicas of one key share a zone and fail together");
    }
  }

  static size_t ZonesOf(const View& view) {
    std::set<std::string_view> zones;
    for (const Member& member : view.layout.members) zones.insert(member.zone);
    return zones.size();
  }

  const View& base_;
  const View& next_;
  const MemberChanges& changes_;
  const ClusterStatistics& statistics_;
  std::set<NodeId> leaving_;
  std::map<std::pair<NodeId, NodeId>, Moved> moves_;
  std::set<NodeId> uncounted_;
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const View& base, const MemberChanges& changes,
                              const ClusterStatistics& statistics) {
  absl::StatusOr<Layout> next = WithMembers(base.layout, changes);
  if (!next.ok()) return next.status();
  const absl::StatusOr<std::shared_ptr<const View>> view = MakeView(*next);
  if (!view.ok()) return view.status();
  Plan plan = {.base_epoch = base.layout.epoch,
               .base_digest = base.digest,
               .hash = PlanHash(*next),
               .changes = changes,
               .next = *std::move(next)};
  Planning(base, **view, changes, statistics).Run(plan);
  return plan;
}

}  // namespace gyre
