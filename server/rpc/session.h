// A session: one client's stream of calls, answered in any order.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/synchronization/mutex.h>
#include <deque>
#include <memory>
#include <vector>

#include "proto/kv.grpc.pb.h"
#include "server/rpc/backend.h"

namespace gyre {

// Parses batches and pushes calls; batches replies. Back-pressure: while too many calls are under way,
// nothing is read. Lives until gRPC and the lane have both let go of it.
class Session : public grpc::ServerBidiReactor<v1::SessionBatch, v1::SessionReplies>, public Waiter {
 public:
  // Its calls must be within `rights` (nullptr: everything), which outlive it.
  static std::shared_ptr<Session> Start(Backend& backend, const Rights* rights);

  void Answered(std::vector<Outbox::Reply> replies) override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // A message of replies ends at about this many bytes.
  static constexpr size_t kReplyBytesMax = 1 << 20;

  Session(Backend& backend, const Rights* rights) : backend_(backend), rights_(rights) {}
  void AddReply(uint64_t id, CallResult result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishIfOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Outgoing {
    v1::SessionReplies message;
    size_t bytes = 0;
  };

  Backend& backend_;
  const Rights* const rights_;
  uint64_t number_ = 0;  // as a waiter
  v1::SessionBatch incoming_;

  absl::Mutex mutex_;
  uint32_t next_place_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint32_t, uint64_t> ids_ ABSL_GUARDED_BY(mutex_);  // the client's ids, by place
  std::deque<Outgoing> outgoing_ ABSL_GUARDED_BY(mutex_);  // the first is being written if writing_
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;  // a read is under way
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

// Milliseconds that the server gives itself of a client's timeout, so that its answer still arrives in time.
Micros ServerTimeout(int64_t client_timeout_ms);

}  // namespace gyre
