// What may stand next on a line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/session.h"
#include "tests/client/fake_admin.h"

namespace gyre::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;

std::vector<std::string> After(const std::vector<std::string>& words, const Memory* memory = nullptr) {
  std::vector<std::string> found;
  for (const Candidate& one : CandidatesFor(words, memory)) found.push_back(one.word);
  return found;
}

TEST(Completion, Commands) {
  EXPECT_THAT(After({""}),
              IsSupersetOf({"put", "get", "cluster", "node", "keyspace", "shell", "completion"}));
  EXPECT_THAT(After({"ke"}), ElementsAre("keyspace"));
  EXPECT_THAT(After({"cluster", "pl"}), ElementsAre("plan"));
  EXPECT_THAT(After({"-o", "json", "cluster", "can"}), ElementsAre("can-restart"));
  EXPECT_THAT(After({"cluster", "moves", "p"}), ElementsAre("pause"));
}

TEST(Completion, Options) {
  EXPECT_THAT(After({"put", "--st"}), ElementsAre("--strict"));
  EXPECT_THAT(After({"cluster", "status", "--"}), IsSupersetOf({"--watch", "--endpoints", "--output"}));
}

TEST(Completion, Values) {
  EXPECT_THAT(After({"bench", "--op", ""}), ElementsAre("get", "mixed", "put"));
  EXPECT_THAT(After({"bench", "--distribution", "z"}), ElementsAre("zipfian"));
  EXPECT_THAT(After({"completion", ""}), ElementsAre("bash", "fish", "zsh"));
  EXPECT_THAT(After({"get", "k", "-r", "q"}), ElementsAre("quorum"));
  EXPECT_THAT(After({"-o", ""}), ElementsAre("json", "text"));
  EXPECT_THAT(After({"get", "k", ""}), IsEmpty());
}

TEST(Completion, WhatTheClusterKnows) {
  FakeAdmin node;
  v1::Topology& topology = *node.status.mutable_topology();
  topology.add_keyspaces()->set_name("carts");
  topology.add_keyspaces()->set_name("sessions");
  topology.add_nodes()->set_id("00000000000000ab");
  node.status.add_shares();
  const std::string at = node.address();
  EXPECT_THAT(After({"--endpoints", at, "-k", ""}), ElementsAre("carts", "sessions"));
  EXPECT_THAT(After({"--endpoints", at, "keyspace", "drop", "c"}), ElementsAre("carts"));
  EXPECT_THAT(After({"--endpoints", at, "keyspace", "create", ""}), IsEmpty());
  EXPECT_THAT(After({"--endpoints", at, "cluster", "can-restart", ""}), ElementsAre("00000000000000ab"));
  EXPECT_THAT(After({"--endpoints", at, "node", "stats", "--node", "00"}), ElementsAre("00000000000000ab"));
}

TEST(Completion, WhatTheShellSaw) {
  Memory memory;
  memory.Saw("default", "cart:1", "context");
  memory.Saw("default", "cart:2", "");
  EXPECT_THAT(After({"get", "cart"}, &memory), ElementsAre("cart:1", "cart:2"));
  EXPECT_EQ(memory.ContextOf("default", "cart:1"), "context");
  EXPECT_EQ(memory.ContextOf("default", "cart:2"), std::nullopt);
  EXPECT_EQ(memory.ContextOf("other", "cart:1"), std::nullopt);
  memory.Saw("default", "cart:1", "");
  EXPECT_EQ(memory.ContextOf("default", "cart:1"), "context");
  EXPECT_THAT(memory.keys(), ElementsAre("cart:1", "cart:2"));
  for (size_t i = 0; i < Memory::kKeysMax; ++i) memory.Saw("default", std::to_string(i), "c");
  EXPECT_EQ(memory.keys().size(), Memory::kKeysMax);
  EXPECT_EQ(memory.ContextOf("default", "cart:1"), std::nullopt);
}

}  // namespace
}  // namespace gyre::cli
