// The two gRPC servers of a node: clients and operators on one port, peers on the other.
#pragma once

#include <absl/status/statusor.h>
#include <memory>
#include <string>

#include "proto/parked_poller.h"
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

  KvService kv_;
  AdminService admin_;
  PeerService peers_;
  std::unique_ptr<grpc::Server> client_server_;
  std::unique_ptr<grpc::Server> peer_server_;
  std::unique_ptr<ParkedPoller> parked_;
};

}  // namespace gyre
