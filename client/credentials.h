// Credentials of channels to nodes, and what it means when one cannot be reached. Internal to the SDK:
// includes gRPC.
#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/grpcpp.h>
#include <memory>
#include <optional>
#include <string>

#include "client/types.h"

namespace gyre {
inline namespace sdk {

// How channels are secured; by default not at all.
struct Credentials {
  std::shared_ptr<grpc::ChannelCredentials> channel = grpc::InsecureChannelCredentials();
  bool tls = false;
};

// UNAUTHENTICATED, a sentence that names the file, when the files cannot be used now; later they are read
// again by themselves.
absl::StatusOr<Credentials> MakeCredentials(const std::optional<TlsFiles>& tls);

// Why the first call to a node failed, as a sentence: DEADLINE_EXCEEDED when it was silent, UNAUTHENTICATED
// or PERMISSION_DENIED when one of both ends refused the other's certificate, else UNAVAILABLE.
absl::Status NotReached(const std::string& address, const Credentials& credentials,
                        const grpc::Status& status);

}  // namespace sdk
}  // namespace gyre
