// Tells other nodes about membership: one unary call per message, and nobody waits for its end.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/synchronization/mutex.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/peer.grpc.pb.h"
#include "server/core/membership_messages.h"
#include "server/rpc/credentials.h"

namespace gyre {

// Threads: thread-safe.
class Teller {
 public:
  explicit Teller(Credentials& credentials) : credentials_(credentials) {}
  ~Teller() { Stop(); }

  // Dropped when too many calls are under way: gossip says it again.
  void Tell(const std::string& address, const control::Message& message);
  // Waits for the calls under way, each of which ends by its deadline. Idempotent.
  void Stop();

 private:
  struct Telling;
  static constexpr int kUnderWayMax = 1024;
  static constexpr size_t kStubsMax = 4096;

  Credentials& credentials_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<grpc::ChannelCredentials> used_ ABSL_GUARDED_BY(mutex_);  // by the stubs
  absl::flat_hash_map<std::string, std::shared_ptr<v1::Peer::Stub>> stubs_ ABSL_GUARDED_BY(mutex_);
  // Calls that ended. They hold channels, which must not die on a thread of gRPC's callbacks (gRPC 1.51).
  std::vector<std::shared_ptr<Telling>> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gyre
