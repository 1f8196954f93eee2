// One fact a row of the placement study: what moves when a node comes or leaves, under each scheme.
#include <gtest/gtest.h>
#include <memory>
#include <string_view>
#include <vector>

#include "tests/bench/placement_study.h"
#include "tests/bench/placements.h"

namespace gyre {
namespace {

constexpr size_t kKeys = 20000;

class Placements : public testing::Test {
 protected:
  Moves Joins(std::string_view scheme, size_t nodes) const {
    const auto before = SchemeNamed(scheme).place(PlacementNodes(nodes));
    const NodeId newcomer = PlacementNodes(nodes + 1).back();
    return MovesOf(*before, *before->With(newcomer), newcomer, keys_);
  }
  // The node at `which` in the list leaves.
  Moves Leaves(std::string_view scheme, size_t nodes, size_t which) const {
    const auto before = SchemeNamed(scheme).place(PlacementNodes(nodes));
    const NodeId leaver = PlacementNodes(nodes)[which];
    return MovesOf(*before, *before->Without(leaver), leaver, keys_);
  }
  double KeysOf(std::string_view scheme, size_t nodes, size_t which) const {
    const auto placed = SchemeNamed(scheme).place(PlacementNodes(nodes));
    const NodeId node = PlacementNodes(nodes)[which];
    const auto on_node = std::ranges::count_if(keys_, [&](Token key) { return placed->NodeOf(key) == node; });
    return static_cast<double>(on_node) / kKeys;
  }
  const std::vector<Token> keys_ = PlacementKeys(kKeys);
};

TEST_F(Placements, ModuloMovesFourFifthsFromFourToFive) {
  // Only keys whose remainders modulo 4 and 5 are equal stay: 4 of 20.
  EXPECT_NEAR(Joins(kModulo, 4).all, .8, .01);
  EXPECT_NEAR(Joins(kModulo, 4).between_stayers, .6, .01);
  EXPECT_NEAR(Leaves(kModulo, 5, 4).all, .8, .01);
}

TEST_F(Placements, TheRingMovesKeysOntoTheNewcomerOnly) {
  for (const std::string_view ring : {kOneToken, kHashedRing, kBalancedRing}) {
    for (const size_t nodes : {1, 4, 7}) {
      const Moves moves = Joins(ring, nodes);
      EXPECT_EQ(moves.between_stayers, 0) << ring << nodes;
      EXPECT_GT(moves.all, 0) << ring << nodes;
    }
  }
  EXPECT_NEAR(Joins(kBalancedRing, 4).all, .2, .02);
  // The balanced one may move some more where the newcomer alone would leave a node 3 % above the best.
  EXPECT_LE(Joins(kBalancedRing, 10).between_stayers, .1 / 11);
}

TEST_F(Placements, TheRingMovesKeysOffTheLeaverOnly) {
  for (const std::string_view ring : {kOneToken, kHashedRing}) {
    for (const size_t which : {0, 3, 9}) {
      const Moves moves = Leaves(ring, 10, which);
      EXPECT_EQ(moves.between_stayers, 0) << ring;
      EXPECT_EQ(moves.all, KeysOf(ring, 10, which)) << ring;
    }
  }
  // The balanced one may move some more to stay even.
  for (const size_t which : {0, 3, 9}) EXPECT_LE(Leaves(kBalancedRing, 10, which).between_stayers, .025);
}

TEST_F(Placements, RendezvousMovesWhatItMust) {
  EXPECT_EQ(Joins(kRendezvous, 10).between_stayers, 0);
  for (const size_t which : {0, 3, 9}) {
    EXPECT_EQ(Leaves(kRendezvous, 10, which).between_stayers, 0);
    EXPECT_EQ(Leaves(kRendezvous, 10, which).all, KeysOf(kRendezvous, 10, which));
  }
}

TEST_F(Placements, JumpHashLosesItsLastNodeOnly) {
  EXPECT_EQ(Joins(kJump, 10).between_stayers, 0);
  EXPECT_EQ(Leaves(kJump, 10, 9).between_stayers, 0);
  EXPECT_EQ(Leaves(kJump, 10, 9).all, KeysOf(kJump, 10, 9));
  EXPECT_GT(Leaves(kJump, 10, 0).between_stayers, .1);  // those behind it are renumbered
}

TEST_F(Placements, MaglevMovesALittleMoreThanItMust) {
  const Moves moves = Joins(kMaglev, 10);
  EXPECT_GT(moves.between_stayers, 0);
  EXPECT_LT(moves.between_stayers, .05);
  EXPECT_GT(Leaves(kMaglev, 10, 3).between_stayers, 0);
}

TEST_F(Placements, FixedSlotsMoveWhatTheyMust) {
  EXPECT_EQ(Joins(kSlots, 10).between_stayers, 0);
  EXPECT_NEAR(Joins(kSlots, 10).all, 1 / 11., .01);
  EXPECT_EQ(Leaves(kSlots, 10, 3).between_stayers, 0);
  EXPECT_EQ(Leaves(kSlots, 10, 3).all, KeysOf(kSlots, 10, 3));
}

}  // namespace
}  // namespace gyre
