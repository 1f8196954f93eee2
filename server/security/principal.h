// Who is at the other end of a connection, by its certificate, and which calls its role may make.
//
// A certificate carries exactly one URI `gyre:ROLE:NAME` among its subject alternative names:
//   gyre:client:shop              an application; what it may do is said by security.permissions
//   gyre:admin:alice              an operator; everything on the clients' port
//   gyre:node:7c41a08fe2b69d13    a node, and which one: everything on the peers' port, in that node's name
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ring/token.h"

namespace gyre {

enum class Role : uint8_t { kClient, kAdmin, kNode };

struct Principal {
  static constexpr size_t kNameBytesMax = 64;
  Role role = Role::kClient;
  std::string name;
  NodeId node;  // of a node
  bool operator==(const Principal&) const = default;
};

// "admin alice"
std::string ToString(const Principal& principal);

// UNAUTHENTICATED, a sentence, when there is no such URI, more than one, or it is garbled. Names are 1 to 64
// letters, digits and any of . _ - @
absl::StatusOr<Principal> PrincipalOf(std::span<const std::string_view> uris);

// Whether its role may make the call of that path ("/gyre.v1.Kv/Get"); PERMISSION_DENIED, a sentence. What is
// not known here is refused.
absl::Status Authorize(const Principal& principal, std::string_view path);

}  // namespace gyre
