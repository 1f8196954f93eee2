// Row keys and row hashes.
#include "storage/format/row_key.h"

#include <gtest/gtest.h>

#include "storage/format/record_codec.h"

namespace gyre {
namespace {

TEST(RowKey, IsKeyspaceTokenAndKeyBigEndian) {
  const std::string row_key = MakeRowKey(0x01020304, 0x05060708090a0b0c, "key");
  EXPECT_EQ(row_key, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0ckey");
  RowKeyParts parts;
  ASSERT_TRUE(ParseRowKey(row_key, parts));
  EXPECT_EQ(parts.keyspace, 0x01020304u);
  EXPECT_EQ(parts.token, 0x05060708090a0b0cu);
  EXPECT_EQ(parts.key, "key");
  EXPECT_FALSE(ParseRowKey(row_key.substr(0, 11), parts));
  ASSERT_TRUE(ParseRowKey(row_key.substr(0, 12), parts));
  EXPECT_EQ(parts.key, "");
}

TEST(RowKey, SortsAsTheRingDoes) {
  const std::string rows[] = {MakeRowKey(0, 0, ""),    MakeRowKey(0, 0, "a"),  MakeRowKey(0, 0, "b"),
                              MakeRowKey(0, 255, "a"), MakeRowKey(0, 256, ""), MakeRowKey(0, UINT64_MAX, "z"),
                              MakeRowKey(1, 0, ""),    MakeRowKey(256, 0, ""), MakeRowKey(UINT32_MAX, 0, "")};
  for (size_t i = 1; i < std::size(rows); ++i) EXPECT_LT(rows[i - 1], rows[i]) << i;
}

TEST(RowKey, FloorAndCeilingEncloseATokensRows) {
  const std::string longest = MakeRowKey(3, 9, std::string(kKeyBytesMax, '\xff'));
  EXPECT_EQ(longest.size(), kRowKeyBytesMax);
  EXPECT_LE(RowKeyFloor(3, 9), MakeRowKey(3, 9, ""));
  EXPECT_LT(longest, RowKeyCeiling(3, 9));
  EXPECT_EQ(RowKeyCeiling(3, 9), RowKeyFloor(3, 10));
  EXPECT_EQ(RowKeyCeiling(3, UINT64_MAX), RowKeyFloor(4, 0));
  EXPECT_EQ(RowKeyCeiling(UINT32_MAX, UINT64_MAX), "") << "an empty end is the end of the table";
}

TEST(RowKey, WhatBeginsLikeAHintAndIsNoneIsAboutItself) {
  const std::string row_key = MakeRowKey(1, 2, "k");
  EXPECT_EQ(HintedRowKey(MakeHintKey(7, row_key)), row_key);
  EXPECT_EQ(HintedRowKey(row_key), row_key);
  EXPECT_EQ(HintedRowKey("\xff\xff\xff\xff short"), "\xff\xff\xff\xff short");
}

TEST(RowHash, NeverChanges) {
  EXPECT_EQ(ToString(HashRow("key", "record")), "a0c5ccfb6c5db6e113116f0d4e74ab2b");
  EXPECT_EQ(ToString(RowHash{.high = 0xab, .low = 0x1}), "00000000000000ab0000000000000001");
}

TEST(RowHash, KnowsWhereTheKeyEnds) { EXPECT_NE(HashRow("ab", "c"), HashRow("a", "bc")); }

TEST(RowHash, SumsCarryAndCanBeTakenApart) {
  RowHash sum{.high = 1, .low = UINT64_MAX};
  sum += {.high = 0, .low = 1};
  EXPECT_EQ(sum, (RowHash{.high = 2, .low = 0}));
  sum -= {.high = 0, .low = 1};
  EXPECT_EQ(sum, (RowHash{.high = 1, .low = UINT64_MAX}));
  const RowHash a = HashRow("a", std::string(1000, 'x'));
  const RowHash b = HashRow("b", "");
  RowHash left = a;
  left += b;
  RowHash right = b;
  right += a;
  EXPECT_EQ(left, right);
  left -= a;
  EXPECT_EQ(left, b);
  left -= b;
  EXPECT_EQ(left, RowHash{});
}

}  // namespace
}  // namespace gyre
