// Choosing a node by preference and health.
#include "client/routing.h"

#include <algorithm>
#include <utility>

namespace gyre {
inline namespace sdk {
namespace {

constexpr size_t kReplicasDefault = 3;  // of a keyspace that this client has not heard of

bool Avoided(PeerId peer, std::span<const PeerId> avoid) {
  return std::find(avoid.begin(), avoid.end(), peer) != avoid.end();
}

bool FailedLately(PeerId peer, TimePoint now, AvoidUntil health) {
  return peer < health.size() && now < health[peer];
}

}  // namespace

absl::StatusOr<Routing> Routing::Build(Input input) {
  std::vector<Member> members;
  members.reserve(input.nodes.size());
  for (const Node& node : input.nodes) members.push_back(node.member);
  absl::StatusOr<Ring> ring = Ring::Build(std::move(members));
  if (!ring.ok()) return ring.status();
  Routing routing(*std::move(ring));
  routing.epoch_ = input.epoch;
  routing.replicas_ = std::move(input.replicas);
  routing.hosts_.resize(routing.ring_.members().size());
  for (const Node& node : input.nodes) {
    routing.hosts_[static_cast<size_t>(routing.ring_.IndexOf(node.member.id))] = {node.peer, node.state};
  }
  return routing;
}

std::optional<PeerId> Routing::Pick(std::string_view keyspace, std::string_view key, TimePoint now,
                                    AvoidUntil health, std::span<const PeerId> avoid) const {
  const std::span<const MemberIndex> preferences = ring_.Preferences(TokenOf(key));
  const auto n = replicas_.find(keyspace);
  const size_t primaries = std::min(preferences.size(), n == replicas_.end() ? kReplicasDefault : n->second);

  std::optional<PeerId> best;
  int best_illness = 0;
  const auto consider = [&](const Host& host) {  // true: there is none better
    if (host.peer == kNoPeer || Avoided(host.peer, avoid)) return false;
    const int illness = (FailedLately(host.peer, now, health) ? 4 : 0) + static_cast<int>(host.state);
    if (!best || illness < best_illness) {
      best = host.peer;
      best_illness = illness;
    }
    return illness == 0;
  };
  for (const MemberIndex index : preferences.first(primaries)) {
    if (consider(hosts_[index])) return best;
  }
  for (const MemberIndex index : preferences.subspan(primaries)) {
    if (consider(hosts_[index])) return best;
  }
  // A preference list is cut short in a large ring; the ill nodes of it are worse than any other node.
  for (const Host& host : hosts_) {
    if (consider(host)) return best;
  }
  return best;
}

std::optional<PeerId> PickAny(std::span<const PeerId> peers, TimePoint now, AvoidUntil health,
                              std::span<const PeerId> avoid) {
  std::optional<PeerId> first;
  for (const PeerId peer : peers) {
    if (Avoided(peer, avoid)) continue;
    if (!FailedLately(peer, now, health)) return peer;
    if (!first) first = peer;
  }
  return first;
}

}  // namespace sdk
}  // namespace gyre
