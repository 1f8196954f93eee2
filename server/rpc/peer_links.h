// Peer links: one stream to every other member of the active layouts, and to those that have left and still
// have something to hand over, over which this node tells it everything about data.
//
// Here it is decided, and here alone, who is asked anything: a peer is up while this node's link to it is
// (from its welcome until the stream breaks), and so is its link to this node, over which its answers come,
// and the failure detector does not suspect it. The lane is told when that changes. What is sent while a link
// is down is dropped: the core counts on no message. Threads: thread-safe.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/synchronization/mutex.h>
#include <memory>
#include <string>
#include <vector>

#include "proto/peer.grpc.pb.h"
#include "server/core/message.h"
#include "server/lane/cluster_state.h"
#include "server/lane/inbox.h"
#include "server/lane/runtime.h"
#include "server/rpc/liveness.h"
#include "server/rpc/peer_link.h"

namespace gyre {

// Whether that node may be linked, if it is known. REQUIRES: layouts.view.
bool MayLink(const Layouts& layouts, NodeId node);

class PeerLinks {
 public:
  PeerLinks(NodeId self, Clock& clock, Inbox<Input>& lane, PeerLink::World world);
  ~PeerLinks() { Stop(); }

  // Who the members are, where they live and (sorted by id) who of them is suspected: opens, re-opens and
  // closes links. Called some times a second, and on changes. Returns sentences for the log: whose state is
  // another one than at the last call.
  std::vector<std::string> Update(const Layouts& layouts, const ClusterState::Known& known,
                                  const std::vector<NodeId>& suspects);

  // A peer's link to this node was opened or ended. One that opens shows that the peer is there: this node's
  // own link to it is opened at once.
  void Incoming(NodeId from, bool open);

  void Send(NodeId to, LayoutMark layout, std::vector<Message> batch);
  Liveness LivenessOf(NodeId node) const;
  size_t Count(Liveness::State state) const;  // of the other members

  // Cancels all streams and waits for their end. Idempotent.
  void Stop();

 private:
  struct Peer;
  Peer& PeerOf(NodeId node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OpenLink(NodeId node, Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Settle(NodeId node) ABSL_LOCKS_EXCLUDED(mutex_);
  void TellLane(NodeId node, Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(std::shared_ptr<PeerLink> link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Peer {
    std::string address;
    std::shared_ptr<PeerLink> link;
    Micros retry_at;   // not before
    int failures = 0;  // in a row
    int incoming = 0;  // links of the peer to this node; for a moment there may be two
    bool suspected = false;
    Liveness::State state = Liveness::State::kSuspect;  // the lane was told whether that is kUp
    Liveness::State logged = Liveness::State::kSuspect;
    Micros since;  // it is up, or is not
  };
  static std::string Sentence(NodeId node, const Peer& peer);

  const NodeId self_;
  Clock& clock_;
  const Micros started_;
  Inbox<Input>& lane_;
  const PeerLink::World world_;

  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t cluster_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<NodeId, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<PeerLink>> ending_ ABSL_GUARDED_BY(mutex_);  // cancelled; kept until they ended
};

}  // namespace gyre
