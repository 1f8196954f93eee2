// The Connection over gRPC: a session with each node, requests batched, keys sent to a replica of theirs.
// Internal to the SDK: includes gRPC.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "client/connection.h"
#include "client/credentials.h"

namespace gyre {
inline namespace sdk {

struct GrpcConnectionOptions {
  std::vector<std::string> endpoints;  // HOST:PORT, tried in this order
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds topology_age_max{
      30000};  // an older topology is asked for again when a call needs it
  Credentials credentials;
};

// Connects to nothing yet. REQUIRES: Shutdown is called before the last reference goes.
std::shared_ptr<Connection> MakeGrpcConnection(GrpcConnectionOptions options);

}  // namespace sdk
}  // namespace gyre
