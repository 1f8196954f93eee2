// One bidirectional stream to one node: writes batches one after another, reads replies. Internal to the SDK:
// includes gRPC.
#pragma once

#include <chrono>
#include <cstdint>
#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "client/outstanding.h"
#include "client/running.h"
#include "proto/kv.grpc.pb.h"

namespace gyre {
inline namespace sdk {

// Lives until gRPC is done with it: it owns itself from Start on.
class SessionStream final : private grpc::ClientBidiReactor<v1::SessionBatch, v1::SessionReplies>,
                            public std::enable_shared_from_this<SessionStream> {
 public:
  // Called on gRPC's threads, one at a time per kind.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnReplies(v1::SessionReplies& replies) = 0;
    virtual void OnWritten() = 0;                                        // the next write may begin
    virtual void OnBroken(uint64_t stream) = 0;                          // nothing more will be read
    virtual void OnEnded(uint64_t stream, const grpc::Status& why) = 0;  // after OnBroken; the last call
  };
  struct Item {
    Outstanding::Id id = 0;
    std::shared_ptr<Exchange> exchange;
    std::chrono::milliseconds time_allowed{0};
  };

  // `number` is not 0 and names this stream to its owner.
  SessionStream(std::shared_ptr<Owner> owner, std::shared_ptr<Running> running, uint64_t number)
      : owner_(std::move(owner)), running_(std::move(running)), number_(number) {}

  uint64_t number() const { return number_; }

  // To be called once. `stub` outlives this call only.
  void Start(v1::Kv::Stub& stub);
  // False while a write is in flight and after the stream broke. After true, Write must follow.
  bool BeginWrite();
  void Write(std::span<const Item> items);
  // Ends the stream soon; the owner is told.
  void Cancel() { context_.TryCancel(); }

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  void Read();
  // The hold on the stream is dropped when it is broken and no write is in flight: only then can nothing be
  // started on it any more.
  enum class Event : uint8_t { kBroken, kWritten };
  void Note(Event event);

  const std::shared_ptr<Owner> owner_;
  const std::shared_ptr<Running> running_;  // entered from Start to the end
  const uint64_t number_;
  std::shared_ptr<SessionStream> self_;
  grpc::ClientContext context_;

  std::mutex mutex_;
  bool writing_ = false;  // guarded by mutex_
  bool broken_ = false;   // guarded by mutex_

  // Messages live on arenas that are reset for each batch, so that an operation costs no allocation of its
  // own.
  google::protobuf::Arena write_arena_;
  google::protobuf::Arena read_arena_;
  v1::SessionReplies* replies_ = nullptr;
};

}  // namespace sdk
}  // namespace gyre
