// Chunks of a backup: where they end, and that nothing but what was written is read.
#include "storage/format/backup_chunk.h"

#include <gtest/gtest.h>
#include <map>

#include "storage/format/row_key.h"
#include "storage/format/sha256.h"

namespace gyre {
namespace {

constexpr uint64_t kFar = 0x9e3779b97f4a7c15;  // tokens of consecutive numbers are spread by it

std::map<std::string, std::string> Rows(uint64_t number, uint32_t keyspace = 1) {
  std::map<std::string, std::string> rows;
  for (uint64_t i = 0; i < number; ++i) {
    rows[MakeRowKey(keyspace, i * kFar, "key" + std::to_string(i))] = "record" + std::to_string(i);
  }
  return rows;
}

std::vector<std::string> ChunksOf(const std::map<std::string, std::string>& rows, uint32_t chunk_rows) {
  std::vector<std::string> chunks;
  ChunkWriter writer(chunk_rows);
  for (const auto& [row_key, record] : rows) {
    if (writer.EndsBefore(row_key)) chunks.push_back(writer.Finish());
    writer.Add(row_key, record);
  }
  if (!writer.empty()) chunks.push_back(writer.Finish());
  return chunks;
}

TEST(BackupChunk, ReadsWhatItWrote) {
  const auto rows = Rows(1000);
  std::map<std::string, std::string> read;
  for (const std::string& chunk : ChunksOf(rows, 16)) {
    const auto decoded = DecodeChunk(chunk);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    for (const ChunkRow& row : *decoded) read[std::string(row.row_key)] = row.record;
  }
  EXPECT_EQ(read, rows);
}

TEST(BackupChunk, HasAboutSoManyRows) {
  EXPECT_NEAR(static_cast<double>(ChunksOf(Rows(16'384), 16).size()), 1024, 100);
  EXPECT_NEAR(static_cast<double>(ChunksOf(Rows(16'384), 256).size()), 64, 25);
}

TEST(BackupChunk, OneRowThatChangesChangesOneChunk) {
  auto rows = Rows(1000);
  const std::vector<std::string> before = ChunksOf(rows, 16);
  std::next(rows.begin(), 500)->second = "another";
  const std::vector<std::string> after = ChunksOf(rows, 16);
  ASSERT_EQ(before.size(), after.size());
  size_t changed = 0;
  for (size_t i = 0; i < before.size(); ++i) changed += before[i] != after[i];
  EXPECT_EQ(changed, 1u);
}

// Replicas hold other ranges of the same rows: where both have all rows, their chunks are equal.
TEST(BackupChunk, EndsAtTheSameRowsWhereverItBegins) {
  const auto rows = Rows(1000);
  const std::vector<std::string> all = ChunksOf(rows, 16);
  const std::vector<std::string> part = ChunksOf({std::next(rows.begin(), 333), rows.end()}, 16);
  ASSERT_LT(part.size(), all.size());
  EXPECT_TRUE(std::equal(part.begin() + 1, part.end(), all.end() - static_cast<long>(part.size()) + 1));
}

TEST(BackupChunk, EndsWithTheRowThatMakesItLargeAndAtAKeyspace) {
  std::map<std::string, std::string> rows;
  for (uint64_t i = 1; i <= 5; ++i) rows[MakeRowKey(1, i, "k")] = std::string(kChunkBytesEnough / 2, 'x');
  rows[MakeRowKey(2, 1, "k")] = "y";
  const std::vector<std::string> chunks = ChunksOf(rows, 16);
  ASSERT_EQ(chunks.size(), 4u);
  EXPECT_EQ(DecodeChunk(chunks[0])->size(), 2u);
  EXPECT_EQ(DecodeChunk(chunks[2])->size(), 1u);
  EXPECT_EQ(DecodeChunk(chunks[3])->size(), 1u);
}

TEST(BackupChunk, FindsEveryFlippedBitAndEveryCut) {
  const std::string bytes = ChunksOf(Rows(10), 1 << 14).front();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_TRUE(absl::IsDataLoss(DecodeChunk(flipped).status())) << bit;
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeChunk(std::string_view(bytes).substr(0, size)).status())) << size;
  }
}

TEST(BackupChunk, RefusesWhatIsNotInOrderOrOfALaterFormat) {
  const auto finish = [](uint8_t format, const std::vector<std::string>& row_keys) {
    ByteWriter out(100);
    out.Byte(format);
    for (const std::string& row_key : row_keys) {
      out.Varint(row_key.size());
      out.Bytes(row_key);
      out.Varint(1);
      out.Bytes("r");
    }
    return out.Finish();
  };
  const std::string a = MakeRowKey(1, 1, "a");
  const std::string b = MakeRowKey(1, 2, "b");
  EXPECT_TRUE(DecodeChunk(finish(1, {a, b})).ok());
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunk(finish(1, {b, a})).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunk(finish(1, {a, a})).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunk(finish(1, {a, MakeRowKey(2, 2, "b")})).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunk(finish(1, {"short"})).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunk(finish(1, {})).status()));
  EXPECT_TRUE(absl::IsUnimplemented(DecodeChunk(finish(2, {a, b})).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunk(finish(0, {a, b})).status()));
}

TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  std::string bytes;
  EXPECT_TRUE(FromHexDigits("00ff10", bytes));
  EXPECT_EQ(bytes, std::string("\x00\xff\x10", 3));
  EXPECT_EQ(ToHexDigits(bytes), "00ff10");
  for (const char* wrong : {"0", "0g", "FF"}) EXPECT_FALSE(FromHexDigits(wrong, bytes)) << wrong;
}

}  // namespace
}  // namespace gyre
