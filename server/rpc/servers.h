// The two gRPC servers of a node: clients and operators on one port, peers on the other.
#pragma once

#include <absl/status/statusor.h>
#include <initializer_list>
#include <memory>
#include <string>

#include "proto/parked_poller.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/backend.h"
#include "server/rpc/credentials.h"
#include "server/rpc/kv_service.h"
#include "server/rpc/peer_service.h"

namespace gyre {

// Serves from its construction by Start until Stop.
class RpcServers {
 public:
  struct Options {
    std::string client_address;
    std::string peer_address;
    Credentials& credentials;
    // Of each of the two:
    size_t connections_max = 0;
    size_t network_bytes = 0;  // for what has arrived or is about to leave
  };
  // UNAVAILABLE naming the address that cannot be listened on.
  static absl::StatusOr<std::unique_ptr<RpcServers>> Start(Backend& backend, const Options& options);
  ~RpcServers() { Stop(); }

  // Says on the health service whether this node takes calls.
  void SetServing(bool serving);
  // No new calls; those under way may end for a moment, then they are cancelled. Idempotent. The lane must
  // have ended.
  void Stop();

 private:
  explicit RpcServers(Backend& backend) : kv_(backend), admin_(backend), peers_(backend) {}

  struct Listening {
    absl::Status Open(const std::string& address, const Options& options, RpcCounters& counters,
                      std::initializer_list<grpc::Service*> services);
    std::unique_ptr<grpc::Server> server;
    std::unique_ptr<Acceptor> acceptor;  // stops before the server
  };

  KvService kv_;
  AdminService admin_;
  PeerService peers_;
  Listening client_port_;
  Listening peer_port_;
  std::unique_ptr<ParkedPoller> parked_;
};

}  // namespace gyre
