// Takes names of certificates apart, and holds the table of roles and services.
#include "server/security/principal.h"

#include <algorithm>
#include <initializer_list>

namespace gyre {
namespace {

constexpr std::string_view kScheme = "gyre:";

struct RoleName {
  std::string_view name;
  Role role;
};
constexpr RoleName kRoles[] = {{"client", Role::kClient}, {"admin", Role::kAdmin}, {"node", Role::kNode}};

struct Service {
  std::string_view prefix;
  std::initializer_list<Role> roles;
};
const Service kServices[] = {
    {"/gyre.v1.Kv/", {Role::kClient, Role::kAdmin}},
    {"/gyre.v1.Admin/", {Role::kAdmin}},
    {"/gyre.v1.Peer/", {Role::kNode}},
    {"/grpc.health.v1.Health/", {Role::kClient, Role::kAdmin, Role::kNode}},
};

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= Principal::kNameBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '.' ||
                  c == '_' || c == '-' || c == '@';
         });
}

}  // namespace

std::string ToString(const Principal& principal) {
  for (const RoleName& role : kRoles) {
    if (role.role == principal.role) return std::string(role.name) + " " + principal.name;
  }
  return principal.name;
}

absl::StatusOr<Principal> PrincipalOf(std::span<const std::string_view> uris) {
  std::string_view own;
  for (const std::string_view uri : uris) {
    if (!uri.starts_with(kScheme)) continue;
    if (!own.empty()) {
      return absl::UnauthenticatedError("the certificate carries two URIs gyre:ROLE:NAME, and may have one");
    }
    own = uri;
  }
  if (own.empty()) {
    return absl::UnauthenticatedError(
        "the certificate carries no URI gyre:ROLE:NAME among its subject alternative names");
  }
  const std::string_view rest = own.substr(kScheme.size());
  const size_t colon = std::min(rest.find(':'), rest.size());
  const std::string_view name = rest.substr(std::min(colon + 1, rest.size()));
  for (const RoleName& role : kRoles) {
    if (role.name != rest.substr(0, colon) || !IsName(name)) continue;
    Principal principal{.role = role.role, .name = std::string(name)};
    if (role.role != Role::kNode) return principal;
    if (ParseNodeId(name, principal.node) && principal.node) return principal;
  }
  return absl::UnauthenticatedError(
      "the certificate's URI that begins with gyre: must be gyre:client:NAME, gyre:admin:NAME or "
      "gyre:node:ID, "
      "the ID sixteen hexadecimal digits");
}

absl::Status Authorize(const Principal& principal, std::string_view path) {
  for (const Service& service : kServices) {
    if (!path.starts_with(service.prefix)) continue;
    if (std::find(service.roles.begin(), service.roles.end(), principal.role) != service.roles.end()) {
      return absl::OkStatus();
    }
  }
  return absl::PermissionDeniedError(ToString(principal) + " may not call " + std::string(path) +
                                     ": its certificate is of another role");
}

}  // namespace gyre
