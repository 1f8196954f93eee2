// Between absl's and gRPC's statuses: the codes are the same.
#pragma once

#include <absl/status/status.h>
#include <string>

#include "proto/kv.grpc.pb.h"

namespace gyre {

inline grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

// Ends a unary call with a status.
inline grpc::ServerUnaryReactor* Finished(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace gyre
