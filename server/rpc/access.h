// What the caller of one call may do beyond what its role says: which keyspaces, and in which node's name.
#pragma once

#include <absl/status/status.h>
#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>
#include <string>

#include "server/core/call.h"
#include "server/security/permissions.h"
#include "server/security/principal.h"

namespace gyre {

class Access {
 public:
  // `permissions` is nullptr where nobody proves who it is, and everybody may do everything. It outlives
  // this.
  explicit Access(const Permissions* permissions) : permissions_(permissions) {}

  // What a call or a session may do; nullptr: everything. Lives as long as the permissions.
  const Rights* RightsOf(const grpc::ServerContextBase& context) const;

  // Whether the caller may speak for that node: PERMISSION_DENIED, a sentence.
  absl::Status SpeaksFor(const grpc::AuthContext& caller, NodeId node) const;
  // The same of who answers a call of our own.
  bool Answers(const grpc::ClientContext& context, NodeId node) const;

  // Logs a call that changes the cluster: who ("admin alice", or the address where nobody proves who it is),
  // and what.
  void LogChange(const grpc::ServerContextBase& context, const google::protobuf::Message& request) const;

 private:
  const Permissions* permissions_;
};

// Whether one call is within `rights` (nullptr: every call is). PERMISSION_DENIED, a sentence.
absl::Status CheckRights(const Rights* rights, const Call& call);

}  // namespace gyre
