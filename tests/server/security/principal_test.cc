// A certificate names one principal or none, and each role may call its own services only.
#include "server/security/principal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

namespace gyre {
namespace {

using testing::HasSubstr;

absl::StatusOr<Principal> Of(std::vector<std::string_view> uris) { return PrincipalOf(uris); }

TEST(PrincipalTest, TheUriSaysRoleAndName) {
  EXPECT_EQ(*Of({"gyre:client:shop"}), (Principal{.role = Role::kClient, .name = "shop"}));
  EXPECT_EQ(*Of({"spiffe://other/name", "gyre:admin:a.b_c-d@E9"}),
            (Principal{.role = Role::kAdmin, .name = "a.b_c-d@E9"}));
  EXPECT_EQ(*Of({"gyre:node:7c41a08fe2b69d13"}),
            (Principal{.role = Role::kNode, .name = "7c41a08fe2b69d13", .node = {0x7c41a08fe2b69d13}}));
  EXPECT_EQ(ToString(*Of({"gyre:admin:alice"})), "admin alice");
}

TEST(PrincipalTest, WhatIsNotClearIsNobody) {
  const std::string too_long = "gyre:client:" + std::string(65, 'a');
  for (const std::vector<std::string_view>& uris :
       std::vector<std::vector<std::string_view>>{{},
                                                  {""},
                                                  {"gyre:"},
                                                  {"gyre:client"},
                                                  {"gyre:client:"},
                                                  {"gyre:client:a b"},
                                                  {"gyre:client:a:b"},
                                                  {"gyre:client:a\n"},
                                                  {too_long},
                                                  {"gyre:Client:shop"},
                                                  {"gyre:root:shop"},
                                                  {"GYRE:client:shop"},
                                                  {"gyre:node:shop"},
                                                  {"gyre:node:7C41A08FE2B69D13"},
                                                  {"gyre:node:0000000000000000"},
                                                  {"gyre:node:7c41a08fe2b69d130"},
                                                  {"gyre:client:a", "gyre:client:a"},
                                                  {"gyre:client:a", "gyre:nonsense"},
                                                  {"gyre:admin:a", "gyre:client:a"}}) {
    const auto principal = Of(uris);
    EXPECT_EQ(principal.status().code(), absl::StatusCode::kUnauthenticated) << testing::PrintToString(uris);
    EXPECT_THAT(std::string(principal.status().message()), HasSubstr("gyre:"));
  }
}

TEST(PrincipalTest, EachRoleHasItsServices) {
  const Principal client = {.role = Role::kClient, .name = "c"};
  const Principal admin = {.role = Role::kAdmin, .name = "a"};
  const Principal node = {.role = Role::kNode, .name = "7c41a08fe2b69d13", .node = {0x7c41a08fe2b69d13}};
  const auto may = [](const Principal& principal, std::string_view path) {
    const absl::Status status = Authorize(principal, path);
    EXPECT_TRUE(status.ok() || absl::IsPermissionDenied(status));
    return status.ok();
  };
  EXPECT_TRUE(may(client, "/gyre.v1.Kv/Session"));
  EXPECT_FALSE(may(client, "/gyre.v1.Admin/ClusterStatus"));
  EXPECT_FALSE(may(client, "/gyre.v1.Peer/Tell"));
  EXPECT_TRUE(may(admin, "/gyre.v1.Kv/Get"));
  EXPECT_TRUE(may(admin, "/gyre.v1.Admin/ClusterStatus"));
  EXPECT_FALSE(may(admin, "/gyre.v1.Peer/Link"));
  EXPECT_FALSE(may(node, "/gyre.v1.Kv/Get"));
  EXPECT_FALSE(may(node, "/gyre.v1.Admin/ClusterStatus"));
  EXPECT_TRUE(may(node, "/gyre.v1.Peer/Link"));
  for (const Principal& anyone : {client, admin, node}) {
    EXPECT_TRUE(may(anyone, "/grpc.health.v1.Health/Check"));
    for (const std::string_view other :
         {"", "/", "/gyre.v1.Kv", "/gyre.v1.Kvx/Get", "/gyre.v2.Kv/Get", "gyre.v1.Kv/Get",
          "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
      EXPECT_FALSE(may(anyone, other)) << other;
    }
  }
}

}  // namespace
}  // namespace gyre
