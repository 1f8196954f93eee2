// Who holds a key while some of its replicas cannot be reached.
#include "server/core/coordinator_ops.h"

#include <gtest/gtest.h>

#include "tests/server/core/turns.h"

namespace gyre {
namespace {

constexpr Token kToken{1};

// A keyspace of two replicas among three nodes, the first of which is down.
struct HoldersTest : testing::Test, TurnOfA {
  HoldersTest() { layouts.view = ThreeNodes({{.name = "two", .n = 2, .r = {}, .w = {}}}); }
  const KeyspaceSpec& keyspace() const { return *view->Keyspace("two"); }
  NodeId Preferred(size_t place) const {
    return view->ring.members()[view->ring.Preferences(kToken)[place]].id;
  }
  std::vector<NodeId> Holders(const KeyspaceSpec& of, bool strict) {
    up.erase(Preferred(0));
    const ReplicaSet set = HoldersOf(turn, of, kToken, strict);
    return {set.ids().begin(), set.ids().end()};
  }
};

TEST_F(HoldersTest, TheNextNodeStandsIn) {
  EXPECT_EQ(Holders(keyspace(), /*strict=*/false), (std::vector<NodeId>{Preferred(2), Preferred(1)}));
}

TEST_F(HoldersTest, NobodyDoesForAStrictCall) {
  EXPECT_EQ(Holders(keyspace(), /*strict=*/true), (std::vector<NodeId>{Preferred(0), Preferred(1)}));
}

TEST_F(HoldersTest, NobodyDoesInAStrictKeyspace) {
  KeyspaceSpec strict = keyspace();
  strict.strict = true;
  EXPECT_EQ(Holders(strict, /*strict=*/false), (std::vector<NodeId>{Preferred(0), Preferred(1)}));
}

}  // namespace
}  // namespace gyre
