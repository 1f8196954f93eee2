// Peer links: one stream to every other member.
#include "server/rpc/peer_links.h"

#include <algorithm>
#include <utility>

namespace gyre {
namespace {

constexpr Micros kRetryFirst = Millis(50);
constexpr Micros kRetryMost = Millis(1000);

Micros RetryAfter(int failures) {
  const int64_t wait = kRetryFirst.value << std::min(failures, 10);
  return std::min(Micros{wait}, kRetryMost);
}

}  // namespace

bool MayLink(const Layouts& layouts, NodeId node) {
  return layouts.HasMember(node) || std::ranges::binary_search(layouts.view->layout.removed, node);
}

PeerLinks::PeerLinks(NodeId self, Clock& clock, Inbox<Input>& lane, PeerLink::World world)
    : self_(self), clock_(clock), started_(clock.Read().steady), lane_(lane), world_(world) {}

std::vector<std::string> PeerLinks::Update(const Layouts& layouts, const ClusterState::Known& known,
                                           const std::vector<NodeId>& suspects) {
  const Micros now = clock_.Read().steady;
  std::vector<std::string> log;
  absl::MutexLock lock(&mutex_);
  if (stopped_) return log;
  cluster_id_ = layouts.view->layout.cluster_id;
  std::erase_if(ending_, [](const auto& link) { return link->ended(); });
  for (const auto& [id, info] : known) {
    if (id == self_ || !MayLink(layouts, id) || info.peer_address.empty()) continue;
    Peer& peer = PeerOf(id);
    if (peer.link != nullptr && peer.address != info.peer_address) peer.link->Cancel();  // it moved
    if (peer.link != nullptr && peer.link->up()) peer.failures = 0;
    if (peer.link != nullptr && peer.link->ended()) {
      peer.link = nullptr;
      peer.retry_at = now + RetryAfter(peer.failures++);
    }
    peer.address = info.peer_address;
    if (peer.link == nullptr && now >= peer.retry_at) OpenLink(id, peer);
    peer.suspected = std::ranges::binary_search(suspects, id);
    TellLane(id, peer);
    if (std::exchange(peer.logged, peer.state) != peer.state) log.push_back(Sentence(id, peer));
  }
  absl::erase_if(peers_, [&](auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto& [id, peer] = entry;
    if (layouts.HasMember(id) || (MayLink(layouts, id) && known.contains(id))) return false;
    End(std::move(peer.link));
    TellLane(id, peer);
    peer.address.clear();
    return peer.incoming == 0;  // its own link to this node is counted until it ends
  });
  return log;
}

std::string PeerLinks::Sentence(NodeId node, const Peer& peer) {
  const std::string name = "Node " + ToString(node) + " at " + peer.address;
  if (peer.state == Liveness::State::kUp) return name + " is up.";
  if (peer.state == Liveness::State::kDown) return name + " is down: it is neither linked nor heard of.";
  return name + (peer.suspected ? " is not heard of, although it is linked" : " is not linked any more") +
         ": it is asked nothing until that has changed.";
}

PeerLinks::Peer& PeerLinks::PeerOf(NodeId node) {
  const auto [peer, added] = peers_.try_emplace(node);
  if (added) peer->second.since = clock_.Read().steady;
  return peer->second;
}

void PeerLinks::OpenLink(NodeId node, Peer& peer) {
  peer.link = PeerLink::Open(
      {cluster_id_, self_, node, peer.address}, [this, node] { Settle(node); }, world_);
}

void PeerLinks::Incoming(NodeId from, bool open) {
  absl::MutexLock lock(&mutex_);
  if (stopped_) return;
  Peer& peer = PeerOf(from);
  peer.incoming += open ? 1 : -1;
  if (open && !peer.address.empty() && (peer.link == nullptr || peer.link->ended())) {
    End(std::move(peer.link));
    OpenLink(from, peer);
  }
  TellLane(from, peer);
}

void PeerLinks::Settle(NodeId node) {
  absl::MutexLock lock(&mutex_);
  const auto peer = peers_.find(node);
  if (peer != peers_.end()) TellLane(node, peer->second);
}

void PeerLinks::TellLane(NodeId node, Peer& peer) {
  const bool linked = peer.incoming > 0 && peer.link != nullptr && peer.link->up();
  const bool was_up = peer.state == Liveness::State::kUp;
  if (linked && !peer.suspected) {
    peer.state = Liveness::State::kUp;
  } else {
    peer.state = linked || !peer.suspected ? Liveness::State::kSuspect : Liveness::State::kDown;
  }
  const bool up = peer.state == Liveness::State::kUp;
  if (up == was_up) return;
  peer.since = clock_.Read().steady;
  if (up) {
    lane_.Push(PeerUp{node});
  } else {
    lane_.Push(PeerDown{node});
  }
}

void PeerLinks::End(std::shared_ptr<PeerLink> link) {
  if (link == nullptr) return;
  link->Cancel();
  ending_.push_back(std::move(link));
}

void PeerLinks::Send(NodeId to, LayoutMark layout, std::vector<Message> batch) {
  std::shared_ptr<PeerLink> link;
  {
    absl::MutexLock lock(&mutex_);
    const auto peer = peers_.find(to);
    if (peer != peers_.end()) link = peer->second.link;
  }
  if (link != nullptr) {
    link->Send(layout, std::move(batch));
  } else {
    world_.counters.peer_messages_dropped.fetch_add(batch.size(), std::memory_order_relaxed);
  }
}

Liveness PeerLinks::LivenessOf(NodeId node) const {
  if (node == self_) return {.state = Liveness::State::kUp, .lasting = clock_.Read().steady - started_};
  absl::MutexLock lock(&mutex_);
  const auto peer = peers_.find(node);
  if (peer == peers_.end()) return {};
  return {.state = peer->second.state, .lasting = clock_.Read().steady - peer->second.since};
}

size_t PeerLinks::Count(Liveness::State state) const {
  absl::MutexLock lock(&mutex_);
  return static_cast<size_t>(std::ranges::count_if(
      peers_, [&](const auto& peer) { return peer.second.state == state && !peer.second.address.empty(); }));
}

void PeerLinks::Stop() {
  std::vector<std::shared_ptr<PeerLink>> links;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    for (auto& [id, peer] : peers_) End(std::move(peer.link));
    peers_.clear();
    links = std::exchange(ending_, {});
  }
  for (const auto& link : links) link->WaitForEnd();
}

}  // namespace gyre
