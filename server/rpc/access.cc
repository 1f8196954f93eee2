// Asks a connection who it is, and the permissions what that means for a call.
#include "server/rpc/access.h"

#include <array>
#include <grpc/grpc_security_constants.h>
#include <spdlog/spdlog.h>
#include <string_view>
#include <variant>
#include <vector>

#include "server/rpc/status.h"

namespace gyre {
namespace {

absl::StatusOr<Principal> Identify(const grpc::AuthContext& caller) {
  const std::vector<grpc::string_ref> found = caller.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME);
  std::vector<std::string_view> uris;
  uris.reserve(found.size());
  for (const grpc::string_ref& uri : found) uris.emplace_back(uri.data(), uri.size());
  return PrincipalOf(uris);
}

struct VerbOf {
  Verb verb;
  std::string_view name;
};
// By the place of a call in its variant.
constexpr std::array<VerbOf, std::variant_size_v<Call>> kVerbs = {
    {{Verb::kWrite, "write"}, {Verb::kRead, "read"}, {Verb::kDelete, "delete"}, {Verb::kScan, "scan"}}};
static_assert(std::is_same_v<std::variant_alternative_t<0, Call>, PutCall>);
static_assert(std::is_same_v<std::variant_alternative_t<1, Call>, GetCall>);
static_assert(std::is_same_v<std::variant_alternative_t<2, Call>, DeleteCall>);
static_assert(std::is_same_v<std::variant_alternative_t<3, Call>, ScanCall>);

}  // namespace

const Rights* Access::RightsOf(const grpc::ServerContextBase& context) const {
  static const Rights kNone;
  if (permissions_ == nullptr) return nullptr;
  const absl::StatusOr<Principal> principal = Identify(*context.auth_context());
  if (!principal.ok()) return &kNone;
  if (principal->role == Role::kAdmin) return nullptr;
  return &permissions_->Of(principal->name);
}

absl::Status Access::SpeaksFor(const grpc::AuthContext& caller, NodeId node) const {
  if (permissions_ == nullptr) return absl::OkStatus();
  const absl::StatusOr<Principal> principal = Identify(caller);
  if (!principal.ok()) return principal.status();
  if (principal->role == Role::kNode && principal->node == node) return absl::OkStatus();
  return absl::PermissionDeniedError("the certificate is of " + ToString(*principal) +
                                     ", which says it is node " + ToString(node));
}

bool Access::Answers(const grpc::ClientContext& context, NodeId node) const {
  return permissions_ == nullptr || SpeaksFor(*context.auth_context(), node).ok();
}

void Access::LogChange(const grpc::ServerContextBase& context,
                       const google::protobuf::Message& request) const {
  std::string who = context.peer();
  if (permissions_ != nullptr) {
    const absl::StatusOr<Principal> principal = Identify(*context.auth_context());
    if (principal.ok()) who = ToString(*principal) + " at " + who;
  }
  spdlog::info("{}: {} {}", who, request.GetDescriptor()->name(), BoundedMessage(request.ShortDebugString()));
}

absl::Status CheckRights(const Rights* rights, const Call& call) {
  if (rights == nullptr) return absl::OkStatus();
  const VerbOf& verb = kVerbs[call.index()];
  const std::string& keyspace =
      std::visit([](const auto& c) -> const std::string& { return c.keyspace; }, call);
  if (rights->May(verb.verb, keyspace)) return absl::OkStatus();
  return absl::PermissionDeniedError("no permission to " + std::string(verb.name) + " in keyspace " +
                                     (keyspace.empty() ? "default" : keyspace) +
                                     ": an operator can give it by security.permissions of the nodes");
}

}  // namespace gyre
