// cluster can-restart against a node in this process: who may go, and why not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/session.h"
#include "tests/client/fake_admin.h"

namespace gyre::cli {
namespace {

using testing::HasSubstr;

class CanRestartTest : public testing::Test {
 protected:
  CanRestartTest() {
    topology.set_cluster_id(1);
    topology.set_layout_epoch(1);
    topology.set_active_layouts(1);
    for (int i = 1; i <= 3; ++i) {
      v1::Node& member = *topology.add_nodes();
      member.set_id("000000000000000" + std::to_string(i));
      member.set_address("127.0.0.1:" + std::to_string(7400 + i));
      member.set_weight(1);
      member.set_member(true);
      for (uint64_t token = 0; token < 8; ++token) member.add_tokens(token * 1000 + static_cast<uint64_t>(i));
    }
    AddKeyspace("default", 3);
  }

  v1::Keyspace& AddKeyspace(const std::string& name, uint32_t n) {
    v1::Keyspace& keyspace = *topology.add_keyspaces();
    keyspace.set_name(name);
    keyspace.set_n(n);
    keyspace.mutable_r()->set_name(v1::Replicas::QUORUM);
    keyspace.mutable_w()->set_name(v1::Replicas::QUORUM);
    return keyspace;
  }

  int CanRestart(const std::string& id, bool json = false) {
    node.status.clear_shares();
    for (int i = 0; i < topology.nodes_size(); ++i) node.status.add_shares();
    *node.status.mutable_topology() = topology;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    std::vector<std::string> words = {"--endpoints", node.address(), "cluster", "can-restart", id};
    if (json) words.insert(words.end(), {"-o", "json"});
    const int code = cli::Run(words, nullptr);
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return code;
  }

  FakeAdmin node;
  v1::Topology topology;
  std::string out;
  std::string err;
};

TEST_F(CanRestartTest, OneOfThreeThatAreWell) {
  EXPECT_EQ(CanRestart("0000000000000002"), kDone) << err;
  EXPECT_EQ(out, "node 0000000000000002 can be restarted: every key keeps its quorum\n");
  EXPECT_EQ(CanRestart("127.0.0.1:7402", /*json=*/true), kDone) << err;
  EXPECT_EQ(out, "{\"node\":\"0000000000000002\",\"can_restart\":true,\"why_not\":[]}\n");
}

TEST_F(CanRestartTest, NotWhileAnotherIsAway) {
  topology.mutable_nodes(0)->set_state(v1::Node::DOWN);
  EXPECT_EQ(CanRestart("0000000000000002"), kOtherFailure);
  EXPECT_THAT(err,
              HasSubstr("keyspace \"default\" needs 2 of its 3 replicas, and some keys would have 1; node "
                        "0000000000000001 is down"));
  // The one that is away already takes nothing with it.
  EXPECT_EQ(CanRestart("0000000000000001"), kDone) << err;
}

TEST_F(CanRestartTest, NotWhileAnotherFillsOrIsOwedHints) {
  topology.mutable_nodes(0)->mutable_facts()->set_filling(true);
  EXPECT_EQ(CanRestart("0000000000000002"), kOtherFailure);
  EXPECT_THAT(err, HasSubstr("fills its store and answers no reads"));
  topology.mutable_nodes(0)->mutable_facts()->set_filling(false);
  (*topology.mutable_nodes(2)->mutable_facts()->mutable_hints_for())[1] = 7;
  EXPECT_EQ(CanRestart("0000000000000002"), kOtherFailure);
  EXPECT_THAT(err, HasSubstr("node 0000000000000001 lacks 7 hints that others hold for it"));
}

TEST_F(CanRestartTest, EveryKeyspaceCounts) {
  AddKeyspace("alone", 1);
  AddKeyspace("all", 3).mutable_w()->set_name(v1::Replicas::ALL);
  EXPECT_EQ(CanRestart("0000000000000003", /*json=*/true), kOtherFailure);
  const Json answer = Json::parse(out);
  EXPECT_EQ(answer["can_restart"], false);
  ASSERT_EQ(answer["why_not"].size(), 2u);
  EXPECT_THAT(answer["why_not"][0].get<std::string>(), HasSubstr("\"alone\" needs 1 of its 1 replicas"));
  EXPECT_THAT(answer["why_not"][1].get<std::string>(), HasSubstr("\"all\" needs 3 of its 3 replicas"));
}

TEST_F(CanRestartTest, NotWhileDataMoves) {
  topology.set_active_layouts(2);
  EXPECT_EQ(CanRestart("0000000000000002"), kOtherFailure);
  EXPECT_THAT(err, HasSubstr("data moves"));
}

TEST_F(CanRestartTest, ANameMustMeanOneMember) {
  EXPECT_EQ(CanRestart("00"), kUsage);
  EXPECT_THAT(err, HasSubstr("several members"));
  EXPECT_EQ(CanRestart("127.0.0.1:1"), kUsage);
  EXPECT_THAT(err, HasSubstr("there is no node at 127.0.0.1:1"));
}

}  // namespace
}  // namespace gyre::cli
