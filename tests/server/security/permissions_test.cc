// What permissions give, and that nothing else is given.
#include "server/security/permissions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

namespace gyre {
namespace {

constexpr Verb kAllVerbs[] = {Verb::kRead, Verb::kWrite, Verb::kDelete, Verb::kScan};

Permissions Parsed(std::vector<std::string> texts) {
  absl::StatusOr<Permissions> permissions = Permissions::Parse(texts);
  EXPECT_TRUE(permissions.ok()) << permissions.status();
  return *std::move(permissions);
}

// The verbs that it may, as letters.
std::string May(const Permissions& permissions, std::string_view client, std::string_view keyspace) {
  std::string may;
  const Rights& rights = permissions.Of(client);
  for (size_t i = 0; i < std::size(kAllVerbs); ++i) {
    if (rights.May(kAllVerbs[i], keyspace)) may += "rwds"[i];
  }
  return may;
}

TEST(PermissionsTest, NothingIsAllowedThatIsNotSaid) {
  EXPECT_EQ(May(Parsed({}), "shop", "carts"), "");
  const Permissions permissions = Parsed({"shop carts read+write", "shop orders read", "shop carts delete",
                                          "reports * scan+read", "* public read"});
  EXPECT_EQ(May(permissions, "shop", "carts"), "rwd");
  EXPECT_EQ(May(permissions, "shop", "orders"), "r");
  EXPECT_EQ(May(permissions, "shop", "cart"), "");
  EXPECT_EQ(May(permissions, "shop", ""), "");
  EXPECT_EQ(May(permissions, "shop", "public"), "r");
  EXPECT_EQ(May(permissions, "reports", "carts"), "rs");
  EXPECT_EQ(May(permissions, "reports", "public"), "rs");
  EXPECT_EQ(May(permissions, "stranger", "carts"), "");
  EXPECT_EQ(May(permissions, "stranger", "public"), "r");
  EXPECT_EQ(May(permissions, "", "public"), "r");
  EXPECT_EQ(May(permissions, "*", "carts"), "");
  EXPECT_EQ(May(permissions, "shop", "*"), "");
}

TEST(PermissionsTest, NoKeyspaceIsTheDefaultOne) {
  EXPECT_EQ(May(Parsed({"shop default write"}), "shop", ""), "w");
  EXPECT_EQ(May(Parsed({"* * read+write+delete+scan"}), "anyone", ""), "rwds");
}

TEST(PermissionsTest, WhatIsNoneIsQuoted) {
  for (const std::string text : {"", "shop", "shop carts", "shop carts read extra", "shop carts reads",
                                 "shop carts +", "shop carts read+", "shop carts +read", "shop carts *"}) {
    const auto permissions = Permissions::Parse(std::vector<std::string>{"a b read", text});
    EXPECT_EQ(permissions.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(permissions.status().message()), testing::StartsWith("\"" + text + "\""));
  }
}

}  // namespace
}  // namespace gyre
