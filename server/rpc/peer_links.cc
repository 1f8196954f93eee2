// Peer links: one stream to every other member.
#include "server/rpc/peer_links.h"

#include <algorithm>
#include <utility>

#include "server/rpc/peer_link.h"

namespace gyre {
namespace {

constexpr Micros kRetryFirst = Millis(50);
constexpr Micros kRetryMost = Millis(1000);

Micros RetryAfter(int failures) {
  const int64_t wait = kRetryFirst.value << std::min(failures, 10);
  return std::min(Micros{wait}, kRetryMost);
}

}  // namespace

PeerLinks::PeerLinks(NodeId self, Clock& clock, Inbox<Input>& lane, RpcCounters& counters,
                     std::shared_ptr<grpc::ChannelCredentials> credentials)
    : self_(self), clock_(clock), lane_(lane), counters_(counters), credentials_(std::move(credentials)) {}

void PeerLinks::Update(const View& view, const ClusterState::Known& known) {
  const Micros now = clock_.Read().steady;
  absl::MutexLock lock(&mutex_);
  if (stopped_) return;
  cluster_id_ = view.layout.cluster_id;
  std::erase_if(ending_, [](const auto& link) { return link->ended(); });
  for (const Member& member : view.layout.members) {
    const auto info = known.find(member.id);
    if (member.id == self_ || info == known.end() || info->second.peer_address.empty()) continue;
    Peer& peer = peers_[member.id];
    if (peer.link != nullptr && peer.address != info->second.peer_address) peer.link->Cancel();  // it moved
    if (peer.link != nullptr && peer.link->up()) peer.failures = 0;
    if (peer.link != nullptr && peer.link->ended()) {
      peer.link = nullptr;
      peer.retry_at = now + RetryAfter(peer.failures++);
    }
    peer.address = info->second.peer_address;
    if (peer.link == nullptr && now >= peer.retry_at) OpenLink(member.id, peer);
  }
  for (auto it = peers_.begin(); it != peers_.end();) {
    const auto next = std::next(it);
    if (view.ring.IndexOf(it->first) < 0) {
      End(std::move(it->second.link));
      TellLane(it->first, it->second);
      peers_.erase(it);
    }
    it = next;
  }
}

void PeerLinks::OpenLink(NodeId node, Peer& peer) {
  peer.link = PeerLink::Open(
      {cluster_id_, self_, node, peer.address}, [this, node] { Settle(node); }, counters_, credentials_);
}

void PeerLinks::Incoming(NodeId from, bool open) {
  absl::MutexLock lock(&mutex_);
  if (stopped_) return;
  Peer& peer = peers_[from];
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
  const bool up = peer.incoming > 0 && peer.link != nullptr && peer.link->up();
  if (std::exchange(peer.up, up) == up) return;
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

void PeerLinks::Send(NodeId to, uint64_t layout_epoch, std::vector<Message> batch) {
  std::shared_ptr<PeerLink> link;
  {
    absl::MutexLock lock(&mutex_);
    const auto peer = peers_.find(to);
    if (peer != peers_.end()) link = peer->second.link;
  }
  if (link != nullptr) {
    link->Send(layout_epoch, std::move(batch));
  } else {
    counters_.peer_messages_dropped.fetch_add(batch.size(), std::memory_order_relaxed);
  }
}

bool PeerLinks::Up(NodeId node) const {
  if (node == self_) return true;
  absl::MutexLock lock(&mutex_);
  const auto peer = peers_.find(node);
  return peer != peers_.end() && peer->second.up;
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
