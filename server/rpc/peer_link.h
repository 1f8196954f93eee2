// One stream to one peer: introduces this node, then sends frames, which fill while one is being written.
//
// Ownership: must live until it ended, and must not be destroyed on a thread of gRPC's callbacks: a channel
// that dies there takes the process with it (gRPC 1.51).
#pragma once

#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/peer.grpc.pb.h"
#include "server/core/message.h"
#include "server/rpc/access.h"
#include "server/rpc/credentials.h"
#include "server/rpc/rpc_counters.h"

namespace gyre {

constexpr uint32_t kPeerFormat = 1;

class PeerLink : public grpc::ClientBidiReactor<v1::Frame, v1::LinkWelcome> {
 public:
  struct Ends {
    uint64_t cluster_id = 0;
    NodeId self;
    NodeId peer;
    std::string address;  // the peer's
  };
  // What all links share; it outlives them.
  struct World {
    RpcCounters& counters;
    Credentials& credentials;
    Access access;
  };
  // `changed` is called, on gRPC's threads and with no lock held, after up() changed.
  static std::shared_ptr<PeerLink> Open(Ends ends, std::function<void()> changed, const World& world);

  // Dropped, and counted, while the link is not up or when too much waits already.
  void Send(LayoutMark layout, std::vector<Message> batch);

  bool up() const { return up_.load(std::memory_order_acquire); }
  bool ended() const { return ended_.HasBeenNotified(); }
  void Cancel() { context_.TryCancel(); }
  void WaitForEnd() { ended_.WaitForNotification(); }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  // A frame ends at about this many bytes, well under the message limit; so much may wait before messages are
  // dropped.
  static constexpr size_t kFrameBytesMax = 1 << 20;
  static constexpr size_t kWaitingBytesMax = 64 << 20;

  PeerLink(Ends ends, std::function<void()> changed, const World& world)
      : ends_(std::move(ends)), changed_(std::move(changed)), world_(world), counters_(world.counters) {}
  v1::Frame NewFrame(LayoutMark layout) const;
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Outgoing {
    v1::Frame frame;
    size_t bytes = 0;
  };

  const Ends ends_;
  const std::function<void()> changed_;
  const World& world_;
  RpcCounters& counters_;
  grpc::ClientContext context_;
  std::unique_ptr<v1::Peer::Stub> stub_;
  v1::LinkWelcome welcome_;
  std::atomic<bool> up_ = false;
  absl::Notification ended_;

  absl::Mutex mutex_;
  std::deque<Outgoing> outgoing_ ABSL_GUARDED_BY(mutex_);  // the first is being written if writing_
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool held_ ABSL_GUARDED_BY(mutex_) = true;  // gRPC waits for us before OnDone
};

}  // namespace gyre
