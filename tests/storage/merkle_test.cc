// The tree's sums are those of its leaves, over any run of them, and doubt is never summed.
#include "storage/merkle.h"

#include <gtest/gtest.h>
#include <random>

namespace gyre {
namespace {

RowHash HashOf(uint64_t n) { return {.high = n * 0x9e3779b97f4a7c15, .low = ~n * 0xc2b2ae3d27d4eb4f}; }

TEST(LeafSet, HoldsWhatWasInsertedAndFindsItInOrder) {
  LeafSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.Next(0), kMerkleLeaves);
  for (const uint32_t leaf : {0u, 63u, 64u, 65'535u, 64u}) set.Insert(leaf);
  EXPECT_EQ(set.size(), 4u);
  EXPECT_EQ(set.Next(0), 0u);
  EXPECT_EQ(set.Next(1), 63u);
  EXPECT_EQ(set.Next(64), 64u);
  EXPECT_EQ(set.Next(65), 65'535u);
  EXPECT_EQ(set.Next(kMerkleLeaves), kMerkleLeaves);
  set.Erase(64);
  set.Erase(64);
  EXPECT_EQ(set.size(), 3u);
  EXPECT_EQ(set.Next(64), 65'535u);
  set.InsertAll();
  EXPECT_EQ(set.size(), size_t{kMerkleLeaves});
  set.Clear();
  EXPECT_EQ(set.Next(0), kMerkleLeaves);
}

TEST(MerkleTree, SumsAnyRunOfLeavesAsAdditionDoes) {
  std::mt19937_64 random(1);
  MerkleTree tree;
  std::vector<RowHash> leaves(kMerkleLeaves);
  for (int i = 0; i < 50'000; ++i) {
    const uint32_t leaf = random() % kMerkleLeaves;
    RowHash delta = HashOf(random());
    if (i % 3 == 0) {
      delta = RowHash{};
      delta -= leaves[leaf];  // what was added is taken away again
    }
    leaves[leaf] += delta;
    tree.Add(leaf, delta);
  }
  for (int i = 0; i < 200; ++i) {
    uint32_t first = random() % (kMerkleLeaves + 1);
    uint32_t last = random() % (kMerkleLeaves + 1);
    if (first > last) std::swap(first, last);
    if (i == 0) first = 0, last = kMerkleLeaves;
    if (i == 1) first = last;
    RowHash sum;
    for (uint32_t leaf = first; leaf < last; ++leaf) sum += leaves[leaf];
    EXPECT_EQ(tree.SumOfLeaves({.first = first, .last = last}), sum) << first << ".." << last;
  }
}

TEST(MerkleTree, EveryNodeIsTheSumOfItsChildren) {
  MerkleTree tree;
  for (uint32_t leaf = 0; leaf < kMerkleLeaves; leaf += 7) tree.Add(leaf, HashOf(leaf));
  for (int level = 0; level + 1 < MerkleTree::kLevels; ++level) {
    for (uint32_t index = 0; index < 1u << (4 * level); ++index) {
      RowHash sum;
      for (uint32_t child = 0; child < MerkleTree::kFanOut; ++child) {
        sum += *tree.SumOfNode(level + 1, index * MerkleTree::kFanOut + child);
      }
      ASSERT_EQ(tree.SumOfNode(level, index), sum) << level << " " << index;
    }
  }
}

TEST(MerkleTree, GivesOutNoSumOverALeafInDoubt) {
  MerkleTree tree;
  tree.Add(5, HashOf(5));
  tree.Add(300, HashOf(300));
  tree.Doubt(300);
  tree.Add(300, HashOf(1));
  EXPECT_EQ(tree.SumOfLeaves({.first = 0, .last = 300}), HashOf(5));
  EXPECT_EQ(tree.SumOfLeaves({.first = 301, .last = kMerkleLeaves}), RowHash{});
  EXPECT_EQ(tree.SumOfLeaves({.first = 300, .last = 301}), std::nullopt);
  EXPECT_EQ(tree.SumOfLeaves({}), std::nullopt);
  EXPECT_EQ(tree.SumOfNode(0, 0), std::nullopt);
  EXPECT_EQ(tree.SumOfNode(3, 300 / 16), std::nullopt);
  EXPECT_EQ(tree.SumOfNode(3, 0), HashOf(5));

  tree.Settle(300, HashOf(7));
  RowHash both = HashOf(5);
  both += HashOf(7);
  EXPECT_EQ(tree.SumOfLeaves({}), both);
  EXPECT_EQ(tree.SumOfNode(4, 300), HashOf(7));
}

TEST(MerkleTree, LeavesAreEqualSlicesOfTokens) {
  EXPECT_EQ(MerkleTree::LeafOf(0), 0u);
  EXPECT_EQ(MerkleTree::LeafOf((uint64_t{1} << 48) - 1), 0u);
  EXPECT_EQ(MerkleTree::LeafOf(uint64_t{1} << 48), 1u);
  EXPECT_EQ(MerkleTree::LeafOf(UINT64_MAX), kMerkleLeaves - 1);
  EXPECT_EQ(MerkleTree::FloorOf(kMerkleLeaves - 1), uint64_t{0xffff} << 48);
}

}  // namespace
}  // namespace gyre
