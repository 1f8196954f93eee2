// A node stays who it is, belongs to one cluster for ever, and shares its data directory with nobody.
#include "server/identity.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <set>
#include <sstream>
#include <unistd.h>

namespace gyre {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

class IdentityTest : public testing::Test {
 protected:
  IdentityTest() { std::filesystem::remove_all(root_); }
  ~IdentityTest() override { std::filesystem::remove_all(root_); }

  std::string FileText() const {
    std::ostringstream text;
    text << std::ifstream(dir_ + "/identity").rdbuf();
    return text.str();
  }
  void WriteFile(const std::string& text) const {
    std::filesystem::create_directories(dir_);
    std::ofstream(dir_ + "/identity") << text;
  }

  const std::string root_ = testing::TempDir() + "gyre_identity_test_" + std::to_string(getpid());
  const std::string dir_ = root_ + "/a/data";
};

// The id is chance, not time or address. (Case 19, basho/riak_kv#1865; its other half is a test of CasesB.)
TEST_F(IdentityTest, Case19_NodesMadeAtTheSameMomentHaveDifferentIds) {
  std::set<NodeId> ids;
  for (int i = 0; i < 100; ++i) {
    const auto identity = OpenIdentity(dir_ + std::to_string(i));
    ASSERT_TRUE(identity.ok()) << identity.status();
    EXPECT_TRUE(ids.insert(identity->node()).second);
  }
}

TEST_F(IdentityTest, FirstUseMakesAnIdThatLaterUsesFind) {
  NodeId first;
  {
    auto identity = OpenIdentity(dir_);
    ASSERT_TRUE(identity.ok()) << identity.status();
    first = identity->node();
    EXPECT_NE(first.value, 0u);
    EXPECT_EQ(identity->cluster(), 0u);
    EXPECT_EQ(identity->store_dir(), dir_ + "/store");
    EXPECT_THAT(FileText(), MatchesRegex("#[^\n]*\nnode = \"[0-9a-f]{16}\"\n"));
  }
  const auto again = OpenIdentity(dir_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->node(), first);
  EXPECT_NE(OpenIdentity(root_ + "/b")->node(), first);
}

TEST_F(IdentityTest, TheClusterIsRecordedOnceForEver) {
  {
    auto identity = OpenIdentity(dir_);
    ASSERT_TRUE(identity.ok()) << identity.status();
    EXPECT_TRUE(identity->SetCluster(0xabc).ok());
    EXPECT_TRUE(identity->SetCluster(0xabc).ok());
  }
  EXPECT_THAT(FileText(), HasSubstr("cluster = \"0000000000000abc\"\n"));
  auto identity = OpenIdentity(dir_);
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->cluster(), 0xabcu);
  const absl::Status other = identity->SetCluster(0xdef);
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("this node belongs to cluster 0000000000000abc and not to 0000000000000def"));
  EXPECT_EQ(identity->cluster(), 0xabcu);
}

TEST_F(IdentityTest, ASecondHolderIsRefusedUntilTheFirstLetsGo) {
  std::optional<Identity> holder;
  {
    auto identity = OpenIdentity(dir_);
    ASSERT_TRUE(identity.ok()) << identity.status();
    holder = *std::move(identity);  // moving keeps the lock
  }
  const auto second = OpenIdentity(dir_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(second.status().message()), "the data directory " + dir_ + " is in use by process " +
                                                        std::to_string(getpid()) +
                                                        "; each node needs its own");
  holder.reset();
  EXPECT_TRUE(OpenIdentity(dir_).ok());
}

TEST_F(IdentityTest, AGarbledFileIsNeverReplaced) {
  for (const std::string garbled :
       {"", "node = 5\n", "node = \"12\"\n", "node = \"0000000000000000\"\n", "node = \"\n",
        "cluster = \"0000000000000abc\"\n", "name = \"0000000000000abc\"\n"}) {
    WriteFile(garbled);
    const auto identity = OpenIdentity(dir_);
    EXPECT_EQ(identity.status().code(), absl::StatusCode::kDataLoss) << garbled;
    EXPECT_THAT(std::string(identity.status().message()),
                HasSubstr("the identity file " + dir_ + "/identity"));
    EXPECT_EQ(FileText(), garbled);
  }
}

TEST_F(IdentityTest, AStoreWithoutItsIdentityIsRefused) {
  std::filesystem::create_directories(dir_ + "/store");
  const auto identity = OpenIdentity(dir_);
  EXPECT_EQ(identity.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(identity.status().message()), HasSubstr("holds a store but no identity"));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/identity"));
}

TEST_F(IdentityTest, ADirectoryThatCannotBeMadeIsAnError) {
  std::filesystem::create_directories(root_);
  std::ofstream(root_ + "/a") << "a file where a directory should be";
  const auto identity = OpenIdentity(dir_);
  EXPECT_EQ(identity.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(identity.status().message()),
            "the data directory " + root_ + "/a cannot be made: File exists");
}

TEST_F(IdentityTest, StoresAreCountedForEver) {
  for (uint64_t stores = 0; stores < 3; ++stores) {
    auto identity = OpenIdentity(dir_);
    ASSERT_TRUE(identity.ok()) << identity.status();
    EXPECT_EQ(identity->stores(), stores);
    EXPECT_TRUE(identity->CountStore().ok());
  }
}

}  // namespace
}  // namespace gyre
