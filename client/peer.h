// One node as the SDK talks to it: a probe, then a session; the queue before it, and the calls it has not
// answered. Internal to the SDK: includes gRPC.
#pragma once

#include <deque>
#include <functional>
#include <grpcpp/grpcpp.h>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/credentials.h"
#include "client/outstanding.h"
#include "client/running.h"
#include "client/session_stream.h"
#include "client/timer.h"
#include "proto/kv.grpc.pb.h"

namespace gyre {
inline namespace sdk {

// While one is alive, requests that its thread queues are written at its end, one batch for each node.
// Entered wherever gRPC enters the SDK: the answers of a batch then make the next batch.
class Cork {
 public:
  Cork();
  ~Cork();
  Cork(const Cork&) = delete;
  Cork& operator=(const Cork&) = delete;

  // True when the calling thread has a cork: `peer` will be flushed.
  static bool Defer(const std::shared_ptr<class Peer>& peer);
  static bool Active();

 private:
  std::vector<std::shared_ptr<class Peer>> peers_;
  bool outermost_;
};

// Whom a peer tells what it learns. Called without locks held, from any thread.
class PeerHost {
 public:
  virtual ~PeerHost() = default;
  virtual void OnTopology(const v1::Topology& topology) = 0;
  virtual void OnEpoch(PeerId peer, uint64_t layout_epoch) = 0;
  virtual void OnWell(PeerId peer) = 0;
  virtual void OnTrouble(PeerId peer, int failures) = 0;  // `failures` in a row, 1 or more
};

// Threads: any. Everything it calls back is called without its lock.
class Peer final : public SessionStream::Owner, public std::enable_shared_from_this<Peer> {
 public:
  // Above these a call is refused with RESOURCE_EXHAUSTED.
  static constexpr size_t kOutstandingMax = 65536;
  static constexpr size_t kOutstandingBytesMax = 64 << 20;
  // A batch ends before the request that would exceed these, far below the 4 MiB at which gRPC servers kill a
  // stream.
  static constexpr size_t kBatchBytesMax = 256 << 10;
  static constexpr size_t kBatchRequestsMax = 512;

  struct Environment {
    std::weak_ptr<PeerHost> host;
    std::shared_ptr<Timer> timer;
    std::shared_ptr<Running> running;
    std::chrono::milliseconds connect_timeout;
    Credentials credentials;
  };
  Peer(PeerId id, std::string address, Environment environment);

  const std::string& address() const { return address_; }

  // As Connection::Send.
  void Send(std::shared_ptr<Exchange> exchange, Connection::SendOptions options);
  // Asks the node for its topology, within the connect timeout.
  void AskTopology(std::function<void(const grpc::Status&, const v1::Topology&)> done);
  // Writes what is queued if the stream is ready for it.
  void Flush();
  // Ends everything, and answers what is outstanding with CANCELLED. Send is refused from now on.
  void Shutdown();

 private:
  // The node is asked for its topology before it gets a session: whatever fails before that certainly was not
  // sent.
  enum class State : uint8_t { kIdle, kProbing, kOpen, kClosed };
  struct Ask;

  void OnReplies(v1::SessionReplies& replies) override;
  void OnWritten() override { Flush(); }
  void OnBroken(uint64_t stream) override;
  void OnEnded(uint64_t stream, const grpc::Status& why) override;

  absl::Status Admit(size_t bytes) const;  // REQUIRES: mutex_ is held
  void Probe();
  void OnProbed(const grpc::Status& status, const v1::Topology& topology);
  void Open();
  void SweepAt(TimePoint time);
  void Sweep();
  v1::Kv::Stub& Stub();  // REQUIRES: mutex_ is held

  const PeerId id_;
  const std::string address_;
  const Environment environment_;

  std::mutex mutex_;  // guards what follows
  State state_ = State::kIdle;
  std::unique_ptr<v1::Kv::Stub> stub_;  // made when first needed
  std::shared_ptr<SessionStream> stream_;
  uint64_t streams_ = 0;
  Outstanding outstanding_;
  std::deque<Outstanding::Id> queue_;  // not sent yet; may name calls that have expired
  TimePoint sweep_at_ = TimePoint::max();
  TimePoint last_reply_{};
  TimePoint probe_after_{};
  int failures_ = 0;  // probes in a row
  absl::Status last_failure_;
  std::vector<std::weak_ptr<Ask>> asks_;
};

}  // namespace sdk
}  // namespace gyre
