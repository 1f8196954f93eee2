// Peer links: one stream to every other member, over which this node tells it everything about data.
//
// A link is up from the peer's welcome until its stream breaks; the lane is told of both. What is sent while
// it is down is dropped: the core counts on no message. Threads: thread-safe.
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
#include "server/rpc/rpc_counters.h"

namespace gyre {

class PeerLink;

class PeerLinks {
 public:
  PeerLinks(NodeId self, Clock& clock, Inbox<Input>& lane, RpcCounters& counters,
            std::shared_ptr<grpc::ChannelCredentials> credentials);
  ~PeerLinks() { Stop(); }

  // Who the members are and where they live: opens, re-opens and closes links. Called about every second, and
  // on changes.
  void Update(const View& view, const ClusterState::Known& known);

  void Send(NodeId to, uint64_t layout_epoch, std::vector<Message> batch);
  bool Up(NodeId node) const;

  // Cancels all streams and waits for their end. Idempotent.
  void Stop();

 private:
  void End(std::shared_ptr<PeerLink> link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Peer {
    std::string address;
    std::shared_ptr<PeerLink> link;
    Micros retry_at;   // not before
    int failures = 0;  // in a row
  };

  const NodeId self_;
  Clock& clock_;
  Inbox<Input>& lane_;
  RpcCounters& counters_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;

  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t cluster_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<NodeId, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<PeerLink>> ending_ ABSL_GUARDED_BY(mutex_);  // cancelled; kept until they ended
};

}  // namespace gyre
