// Notes and snapshots come back as they were; anything else is refused.
#include "storage/sums_codec.h"

#include <gtest/gtest.h>
#include <random>

#include "storage/format/bytes.h"

namespace gyre {
namespace {

SumsNote SomeNote() {
  KeyspaceNote first;
  first.keyspace = 3;
  first.deltas = {{.leaf = 0, .sum = {.high = 1, .low = 2}}, {.leaf = 65'535, .sum = {.high = 0, .low = 9}}};
  KeyspaceNote second;
  second.keyspace = 4;
  second.in_doubt = {0, 1, 300};
  return {.number = 12, .previous = 9, .keyspaces = {first, second}};
}

std::string WithChecksum(std::string_view body) {
  ByteWriter out(body.size() + kChecksumBytes);
  out.Bytes(body);
  return out.Finish();
}

std::string Body(const std::string& bytes) { return bytes.substr(0, bytes.size() - kChecksumBytes); }

TEST(SumsNote, ComesBack) {
  EXPECT_EQ(*DecodeSumsNote(EncodeSumsNote(SomeNote())), SomeNote());
  const SumsNote empty{.number = 1, .previous = 0, .keyspaces = {}};
  EXPECT_EQ(*DecodeSumsNote(EncodeSumsNote(empty)), empty);
}

TEST(SumsNote, IsCompact) {
  SumsNote note{.number = 1, .previous = 0, .keyspaces = {KeyspaceNote{}}};
  note.keyspaces[0].deltas.push_back({.leaf = 5, .sum = {.high = 1, .low = 1}});
  EXPECT_EQ(EncodeSumsNote(note).size(), 17u + 4 + 1 + 17 + 1 + 8);
}

TEST(SumsNote, RefusesWhatIsNotCanonical) {
  const auto refused = [](void (*spoil)(SumsNote&)) {
    SumsNote note = SomeNote();
    spoil(note);
    return absl::IsDataLoss(DecodeSumsNote(EncodeSumsNote(note)).status());
  };
  EXPECT_TRUE(refused([](SumsNote& note) { note.previous = note.number; }));
  EXPECT_TRUE(refused([](SumsNote& note) { note.keyspaces[1].keyspace = 3; }));
  EXPECT_TRUE(refused([](SumsNote& note) { note.keyspaces[0].deltas[0].sum = {}; }));
  EXPECT_TRUE(refused([](SumsNote& note) { note.keyspaces[1].in_doubt.clear(); }));
}

TEST(SumsNote, RefusesEveryTruncationAndMutation) {
  const std::string bytes = EncodeSumsNote(SomeNote());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeSumsNote(bytes.substr(0, size)).status())) << size;
  }
  // With a fresh checksum a mutation may be another note, but then it is that note's only form.
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string body = Body(bytes);
    for (uint64_t n = 1 + random() % 3; n > 0; --n)
      body[random() % body.size()] = static_cast<char>(random());
    if (random() % 4 == 0) body.resize(random() % body.size());
    const std::string mutant = WithChecksum(body);
    const absl::StatusOr<SumsNote> note = DecodeSumsNote(mutant);
    if (note.ok()) {
      ASSERT_EQ(EncodeSumsNote(*note), mutant);
    }
  }
}

TEST(SumsNote, RefusesALaterVersionAsSuch) {
  std::string body = Body(EncodeSumsNote(SomeNote()));
  body[0] = 2;
  EXPECT_TRUE(absl::IsUnimplemented(DecodeSumsNote(WithChecksum(body)).status()));
  body[0] = 0;
  EXPECT_TRUE(absl::IsDataLoss(DecodeSumsNote(WithChecksum(body)).status()));
}

TEST(SumsSnapshot, ComesBackWithDoubtsAndSuspects) {
  MerkleTree tree;
  for (uint32_t leaf = 0; leaf < kMerkleLeaves; leaf += 3) tree.Add(leaf, {.high = leaf, .low = leaf + 1});
  tree.Doubt(3);
  LeafSet suspect;
  suspect.Insert(6);
  const absl::StatusOr<SumsSnapshot> back =
      DecodeSumsSnapshot(EncodeSumsSnapshot({.sequence = 11, .number = 7}, tree, suspect));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->position, (SumsPosition{.sequence = 11, .number = 7}));
  for (uint32_t leaf = 0; leaf < kMerkleLeaves; ++leaf) {
    const bool in_doubt = leaf == 3 || leaf == 6;
    const auto expected = in_doubt ? std::nullopt : tree.SumOfNode(MerkleTree::kLevels - 1, leaf);
    ASSERT_EQ(back->tree->SumOfNode(MerkleTree::kLevels - 1, leaf), expected) << leaf;
  }
}

TEST(SumsSnapshot, IsSparseAndBounded) {
  MerkleTree tree;
  EXPECT_EQ(EncodeSumsSnapshot({}, tree, {}).size(), 17u + 2 + 8);
  for (uint32_t leaf = 0; leaf < kMerkleLeaves; ++leaf) tree.Add(leaf, {.high = 1, .low = 1});
  EXPECT_EQ(EncodeSumsSnapshot({}, tree, {}).size(), 17u + 1 + 3 + kMerkleLeaves * 17 + 8);
  tree.DoubtAll();
  EXPECT_EQ(EncodeSumsSnapshot({}, tree, {}).size(), 17u + 3 + kMerkleLeaves + 1 + 8);
}

TEST(SumsSnapshot, RefusesEveryTruncationAndMutation) {
  MerkleTree tree;
  tree.Add(7, {.high = 1, .low = 2});
  tree.Add(700, {.high = 1, .low = 2});
  tree.Doubt(8);
  const std::string bytes = EncodeSumsSnapshot({.sequence = 11, .number = 7}, tree, {});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeSumsSnapshot(bytes.substr(0, size)).status())) << size;
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string body = Body(bytes);
    for (uint64_t n = 1 + random() % 3; n > 0; --n)
      body[random() % body.size()] = static_cast<char>(random());
    if (random() % 4 == 0) body.resize(random() % body.size());
    const std::string mutant = WithChecksum(body);
    const absl::StatusOr<SumsSnapshot> snapshot = DecodeSumsSnapshot(mutant);
    if (snapshot.ok()) {
      ASSERT_EQ(EncodeSumsSnapshot(snapshot->position, *snapshot->tree, {}), mutant);
    }
  }
}

}  // namespace
}  // namespace gyre
