// Channels to one node, and one call on them. Internal to the SDK: includes gRPC.
#pragma once

#include <absl/status/statusor.h>
#include <chrono>
#include <grpcpp/grpcpp.h>
#include <memory>

#include "client/admin.h"
#include "proto/admin.grpc.pb.h"
#include "proto/kv.grpc.pb.h"

namespace gyre {
inline namespace sdk {

inline absl::Status StatusOf(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

KeyspaceInfo KeyspaceOf(const v1::Keyspace& wire);

struct AdminClient::Stubs {
  std::unique_ptr<v1::Kv::Stub> kv;
  std::unique_ptr<v1::Admin::Stub> admin;
  std::chrono::system_clock::time_point deadline;

  // One call: `method` of the admin stub.
  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Call(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                     Reply*),
                             const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(deadline);
    Reply reply;
    const grpc::Status status = (admin.get()->*method)(&context, request, &reply);
    if (!status.ok()) return StatusOf(status);
    return reply;
  }
};

}  // namespace sdk
}  // namespace gyre
