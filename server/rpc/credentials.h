// How connections prove who is at their ends: by certificates of one authority on both sides, or not at all.
//
// With certificates, a connection without one that the authority vouches for ends in its handshake; and a
// call that the caller's role may not make ends before any service sees it (server/security/principal.h).
// Certificates that are replaced are used from the next handshake on; connections that are open stay.
#pragma once

#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>
#include <memory>

#include "server/rpc/rpc_counters.h"
#include "server/security/certificate_watch.h"

namespace gyre {

// Threads: thread-safe.
class Credentials {
 public:
  // `watch` is nullptr where nobody proves anything. Both outlive this and all that it makes.
  Credentials(const CertificateWatch* watch, RpcCounters& counters) : watch_(watch), counters_(counters) {}

  // For one server.
  std::shared_ptr<grpc::ServerCredentials> MakeForServer() const;
  // For channels to other nodes; another object only after the certificate was replaced. It is asserted of
  // who answers that it is a node, whatever its host name: which node, PeerLink asks.
  std::shared_ptr<grpc::ChannelCredentials> ForChannels();

 private:
  const CertificateWatch* const watch_;
  RpcCounters& counters_;
  absl::Mutex mutex_;
  uint64_t number_ ABSL_GUARDED_BY(mutex_) = 0;  // of the certificate in channels_
  std::shared_ptr<grpc::ChannelCredentials> channels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gyre
