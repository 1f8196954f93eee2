// The stable cut on records: what it proves superseded, and what it lets go, decoded and encoded.
#include <gtest/gtest.h>

#include "storage/causal/stable_cut.h"
#include "storage/format/record_codec.h"
#include "tests/storage/causal/world.h"

namespace gyre {
namespace {

using testing::DotOf;
using testing::ValueOf;
using testing::VectorOf;

constexpr uint64_t A = 1, B = 2;

Record With(std::initializer_list<Dot> seen, std::initializer_list<Dot> versions) {
  Record record = {.seen = VectorOf(seen)};
  for (const Dot& dot : versions) record.versions.push_back({.dot = dot, .value = "v"});
  return record;
}

RecordBytes Bytes(const Record& record) { return std::make_shared<const std::string>(EncodeRecord(record)); }

CutRecord At(uint64_t cut, const Record& record) { return {Bytes(record), cut}; }

Record Merged(const CutRecord& a, const CutRecord& b) {
  const absl::StatusOr<CutRecord> merged = MergeAtCuts(a, b, ConflictRule::kSiblings);
  const absl::StatusOr<CutRecord> reversed = MergeAtCuts(b, a, ConflictRule::kSiblings);
  EXPECT_EQ(*merged->record, *reversed->record);
  EXPECT_EQ(merged->cut, std::max(a.cut, b.cut));
  return *DecodeRecord(*merged->record);
}

TEST(StableCut, AValueBelowTheHigherCutThatItsHolderLacksIsSuperseded) {
  const Record old = With({DotOf(A, 10)}, {DotOf(A, 10)});
  const Record other = With({DotOf(B, 20)}, {DotOf(B, 20)});
  EXPECT_EQ(Merged(At(5, old), At(15, other)).versions.size(), 1u);
  EXPECT_EQ(Merged(At(5, old), At(9, other)).versions.size(), 2u);    // above the cut: a sibling
  EXPECT_EQ(Merged(At(15, old), At(15, other)).versions.size(), 2u);  // both knew of it
}

TEST(StableCut, AnAbsentRowUnderAHigherCutStandsForWhatWasCollected) {
  const CutRecord nothing = {nullptr, 15};
  const absl::StatusOr<CutRecord> merged =
      MergeAtCuts(nothing, At(0, With({DotOf(A, 10)}, {DotOf(A, 10)})), ConflictRule::kSiblings);
  EXPECT_TRUE(DecodeRecord(*merged->record)->versions.empty());
}

TEST(StableCut, WhatBothHoldStays) {
  const Record record = With({DotOf(A, 10)}, {DotOf(A, 10)});
  EXPECT_EQ(Merged(At(0, record), At(15, record)), record);
}

TEST(StableCut, ATombstoneGoesWhenItsWholeVectorIsBelow) {
  Record tombstone = With({DotOf(A, 10), DotOf(B, 20)}, {});
  EXPECT_EQ(CollectibleFrom(tombstone), 20u);
  EXPECT_FALSE(Collect(tombstone, 19));
  EXPECT_TRUE(Collect(tombstone, 20));
  EXPECT_TRUE(tombstone.empty());
}

TEST(StableCut, AValueGoesWhenBothItsDotAndItsExpiryAreBelow) {
  const uint64_t second = CounterOfMillis(1000);
  Record record = {.seen = VectorOf({DotOf(A, second)}), .versions = {}};
  record.versions.push_back({.dot = DotOf(A, second), .expires_ms = 3000, .value = "v"});
  EXPECT_EQ(CollectibleFrom(record), CounterOfMillis(3000));
  Record same = record;
  EXPECT_FALSE(Collect(same, CounterOfMillis(3000) - 1));
  EXPECT_TRUE(Collect(same, CounterOfMillis(3000)));
  EXPECT_TRUE(same.empty());
  // A dot minted by a clock that was ahead.
  record.versions[0].expires_ms = 500;
  EXPECT_EQ(CollectibleFrom(record), second);
}

TEST(StableCut, AnExpiredSiblingGoesAloneAndItsVectorStays) {
  Record record = With({DotOf(A, 10), DotOf(B, 20)}, {DotOf(A, 10), DotOf(B, 20)});
  record.versions[0].expires_ms = 1;
  EXPECT_TRUE(Collect(record, CounterOfMillis(1)));
  ASSERT_EQ(record.versions.size(), 1u);
  EXPECT_EQ(record.versions[0].dot, DotOf(B, 20));
  EXPECT_TRUE(record.seen.Covers(DotOf(A, 10)));
}

TEST(StableCut, ASupersededRetryIsForgottenWithTheWriteThatSupersededIt) {
  Record record = With({DotOf(A, 10)}, {DotOf(A, 10)});
  record.superseded.push_back({{1, 1}, DotOf(A, 9)});
  EXPECT_EQ(CollectibleFrom(record), 9u);
  EXPECT_FALSE(Collect(record, 8));
  EXPECT_TRUE(Collect(record, 9));
  EXPECT_TRUE(record.superseded.empty());
  EXPECT_EQ(CollectibleFrom(record), kNeverCollectible);
}

TEST(StableCut, AValueThatDoesNotExpireIsNeverCollected) {
  Record record = With({DotOf(A, 10)}, {DotOf(A, 10)});
  EXPECT_FALSE(Collect(record, kNeverCollectible - 1));
  EXPECT_EQ(ExpiryCut(10, UINT64_MAX), kNeverCollectible);
}

TEST(StableCut, TheEncodedRecordTellsTheSame) {
  Record record = With({DotOf(A, 10), DotOf(B, 20)}, {DotOf(A, 10), DotOf(B, 20)});
  record.versions[0].write_id = {3, 4};
  record.versions[0].retried = true;
  record.versions[1].expires_ms = 7;
  record.superseded.push_back({{1, 1}, DotOf(A, 9)});
  for (const Record& each :
       {record, With({DotOf(A, 10)}, {}), With({DotOf(A, 1)}, {DotOf(A, 1)}), Record{}}) {
    const std::string bytes = EncodeRecord(each);
    EXPECT_EQ(CollectibleFrom(bytes), CollectibleFrom(each));
    EXPECT_EQ(NewestCounter(bytes), each.seen.Max());
    EXPECT_EQ(OldestCounter(bytes), each.versions.empty() ? each.seen.Max() : each.versions[0].dot.counter);
  }
  EXPECT_EQ(CollectibleFrom(std::string_view("garbage")), kNeverCollectible);
}

TEST(StableCut, BytesThatCannotBeDecodedStay) {
  std::string bytes = EncodeRecord(With({DotOf(A, 10)}, {}));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const auto damaged = std::make_shared<const std::string>(bytes);
  EXPECT_EQ(Collected(damaged, 100), damaged);
}

}  // namespace
}  // namespace gyre
