// Record bytes: canonical, checked, and refused when they are anything else.
#include "storage/format/record_codec.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include "tests/storage/causal/world.h"

namespace gyre {
namespace {

using testing::DotOf;
using testing::ValueOf;
using testing::VectorOf;

std::string BigEndian(uint64_t value, int bytes) {
  std::string out;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
  return out;
}

// Makes any bytes pass the checksum, so that what is behind it is tested.
std::string Sealed(const std::string& body) {
  return body + BigEndian(XXH3_64bits(body.data(), body.size()), 8);
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += "0123456789abcdef"[static_cast<uint8_t>(byte) >> 4];
    text += "0123456789abcdef"[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

std::string FromHex(const std::string& text) {
  std::string bytes;
  std::string digits;
  for (const char c : text) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<char>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

RecordBytes Shared(const Record& record) { return std::make_shared<const std::string>(EncodeRecord(record)); }

// The record that storage/FORMAT.md shows.
Record Example() {
  Record record{.seen = VectorOf({DotOf(0xa, 0x20, 1), DotOf(0xb, 0x30)}), .versions = {}, .superseded = {}};
  Version version{.dot = DotOf(0xb, 0x30),
                  .write_id = {.high = 1, .low = 2},
                  .retried = true,
                  .expires_ms = 0x1234,
                  .value = "milk"};
  record.versions.push_back(version);
  record.superseded.push_back({{3, 4}, DotOf(0xa, 0x20, 1)});
  return record;
}

const char kExample[] =
    "01"                                    // format
    "02"                                    // two entries
    "000000000000000a 01 0000000000000020"  // node, incarnation, counter
    "000000000000000b 00 0000000000000030"
    "01"                                 // one version
    "01 0000000000000030 07"             // actor, counter, flags
    "0000000000000001 0000000000000002"  // write id
    "0000000000001234"                   // expiry
    "04 6d696c6b"                        // value
    "01"                                 // one superseded retry
    "0000000000000003 0000000000000004"  // write id
    "00 0000000000000020";               // actor, counter

TEST(RecordCodec, WritesTheBytesOfTheSpecification) {
  const std::string bytes = EncodeRecord(Example());
  EXPECT_EQ(Hex(bytes.substr(0, bytes.size() - 8)), Hex(FromHex(kExample)));
  EXPECT_EQ(bytes, Sealed(FromHex(kExample)));
  EXPECT_EQ(*DecodeRecord(bytes), Example());
  EXPECT_EQ(Hex(EncodeRecord(Record{})).substr(0, 8), "01000000");
  EXPECT_EQ(*DecodeRecord(EncodeRecord(Record{})), Record{});
}

TEST(RecordCodec, EqualRecordsHaveEqualBytesAndOnlyThey) {
  for (const ConflictRule rule : {ConflictRule::kSiblings, ConflictRule::kLastWriteWins}) {
    for (uint32_t seed = 0; seed < 30; ++seed) {
      testing::World world(seed, rule);
      world.Run(50);
      std::map<std::string, Record> by_bytes;
      for (const auto& state : world.history()) {
        const std::string bytes = EncodeRecord(state.record);
        const auto decoded = DecodeRecord(bytes);
        ASSERT_TRUE(decoded.ok()) << decoded.status();
        ASSERT_EQ(*decoded, state.record);
        ASSERT_EQ(by_bytes.emplace(bytes, state.record).first->second, state.record);
      }
      for (const auto& [bytes, record] : by_bytes) {
        for (const auto& [other_bytes, other] : by_bytes) ASSERT_EQ(bytes == other_bytes, record == other);
      }
    }
  }
}

struct Bad {
  const char* what;
  const char* body;
};

constexpr Bad kBad[] = {
    {"nothing at all", ""},
    {"format 0", "00 00 00 00"},
    {"only the format", "01"},
    {"trailing bytes", "01 00 00 00 00"},
    {"a padded varint", "01 80 00 00 00"},
    {"a varint beyond 64 bits", "01 ffffffffffffffffff 02 00 00"},
    {"a varint without an end", "01 ffffffffffffffffffffffff"},
    {"more entries than bytes", "01 ffffffffffffffff7f 00 00"},
    {"one entry too many", "01 02 000000000000000a 00 0000000000000020 00 00"},
    {"a zero counter", "01 01 000000000000000a 00 0000000000000000 00 00"},
    {"a counter beyond the limit", "01 01 000000000000000a 00 8000000000000000 00 00"},
    {"an incarnation of more than 32 bits", "01 01 000000000000000a 8080808010 0000000000000020 00 00"},
    {"unsorted entries",
     "01 02 000000000000000b 00 0000000000000020 000000000000000a 00 0000000000000020 00 00"},
    {"an actor twice",
     "01 02 000000000000000a 00 0000000000000020 000000000000000a 00 0000000000000021 00 00"},
    {"a version of an unknown actor",
     "01 01 000000000000000a 00 0000000000000020 01 01 0000000000000020 00 00 00"},
    {"a version that the vector does not cover",
     "01 01 000000000000000a 00 0000000000000020 01 00 0000000000000021 00 00 00"},
    {"a version with counter 0",
     "01 01 000000000000000a 00 0000000000000020 01 00 0000000000000000 00 00 00"},
    {"a version without an entry", "01 00 01 00 0000000000000020 00 00 00"},
    {"a dot twice",
     "01 01 000000000000000a 00 0000000000000020 02 00 0000000000000020 00 00 00 0000000000000020 00 00 00"},
    {"unsorted versions",
     "01 01 000000000000000a 00 0000000000000020 02 00 0000000000000020 00 00 00 000000000000001f 00 00 00"},
    {"unknown flags", "01 01 000000000000000a 00 0000000000000020 01 00 0000000000000020 08 00 00"},
    {"a retry without an id", "01 01 000000000000000a 00 0000000000000020 01 00 0000000000000020 02 00 00"},
    {"an empty id",
     "01 01 000000000000000a 00 0000000000000020 01 00 0000000000000020 01 0000000000000000 0000000000000000 "
     "00 00"},
    {"an expiry of 0",
     "01 01 000000000000000a 00 0000000000000020 01 00 0000000000000020 04 0000000000000000 00 00"},
    {"a value longer than the bytes",
     "01 01 000000000000000a 00 0000000000000020 01 00 0000000000000020 00 05 61 00"},
    {"a value of hostile length",
     "01 01 000000000000000a 00 0000000000000020 01 00 0000000000000020 00 ffffffffffffffffff01 61 00"},
    {"more versions than bytes", "01 01 000000000000000a 00 0000000000000020 ffffffff0f 00"},
    {"more superseded retries than bytes", "01 01 000000000000000a 00 0000000000000020 00 ffffffff0f"},
    {"an empty superseded id",
     "01 01 000000000000000a 00 0000000000000020 00 01 0000000000000000 0000000000000000 00 "
     "0000000000000020"},
    {"a superseding write that the vector does not cover",
     "01 01 000000000000000a 00 0000000000000020 00 01 0000000000000000 0000000000000001 00 "
     "0000000000000021"},
    {"unsorted superseded ids",
     "01 01 000000000000000a 00 0000000000000020 00 02 0000000000000000 0000000000000002 00 0000000000000020"
     "0000000000000000 0000000000000001 00 0000000000000020"},
    {"a superseded id twice",
     "01 01 000000000000000a 00 0000000000000020 00 02 0000000000000000 0000000000000002 00 0000000000000020"
     "0000000000000000 0000000000000002 00 0000000000000020"},
    {"a version whose id was superseded",
     "01 01 000000000000000a 00 0000000000000020 01 00 0000000000000020 01 0000000000000000 0000000000000007 "
     "00"
     "01 0000000000000000 0000000000000007 00 0000000000000020"},
};

TEST(RecordCodec, RefusesWhatIsNotCanonical) {
  for (const Bad& bad : kBad) {
    EXPECT_EQ(DecodeRecord(Sealed(FromHex(bad.body))).status().code(), absl::StatusCode::kDataLoss)
        << bad.what;
  }
}

TEST(RecordCodec, KnowsALaterFormatFromARottenByte) {
  EXPECT_EQ(DecodeRecord(Sealed(FromHex("02 00 00 00"))).status().code(), absl::StatusCode::kUnimplemented);
  std::string rotten = EncodeRecord(Example());
  rotten[0] = 2;
  EXPECT_EQ(DecodeRecord(rotten).status().code(), absl::StatusCode::kDataLoss);
}

TEST(RecordCodec, FindsEveryFlippedBitAndEveryCut) {
  const std::string bytes = EncodeRecord(Example());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(DecodeRecord(flipped).status().code(), absl::StatusCode::kDataLoss) << "bit " << bit;
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeRecord(std::string_view(bytes).substr(0, size)).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

// Whatever passes is canonical: it encodes to the bytes it came from.
void ExpectErrorOrCanonical(const std::string& bytes, int& accepted) {
  const auto decoded = DecodeRecord(bytes);
  if (!decoded.ok()) return;
  ++accepted;
  ASSERT_EQ(EncodeRecord(*decoded), bytes);
  ASSERT_EQ(Merge(*decoded, *decoded), *decoded);
}

TEST(RecordCodec, AcceptsMutatedBytesOnlyWhenCanonical) {
  std::mt19937 random(1);
  int accepted = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    testing::World world(seed, ConflictRule::kSiblings);
    world.Run(30);
    for (const auto& state : world.history()) {
      const std::string bytes = EncodeRecord(state.record);
      for (int i = 0; i < 100; ++i) {
        std::string body = bytes.substr(0, bytes.size() - 8);
        for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
          const size_t at = random() % body.size();
          switch (random() % 4) {
            case 0:
              body[at] = static_cast<char>(random());
              break;
            case 1:
              body[at] = static_cast<char>(body[at] ^ (1 << random() % 8));
              break;
            case 2:
              body.insert(at, 1, static_cast<char>(random()));
              break;
            default:
              if (body.size() > 1) body.erase(at, 1);
          }
        }
        ExpectErrorOrCanonical(Sealed(body), accepted);
      }
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(RecordCodec, AcceptsRandomBytesOnlyWhenCanonical) {
  std::mt19937 random(2);
  int accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string body(random() % 64, 0);
    for (char& byte : body) byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 3);
    ExpectErrorOrCanonical(i % 2 == 0 ? body : Sealed(body), accepted);
  }
}

TEST(SeenCounter, ReadsTheVectorAlone) {
  const std::string bytes = EncodeRecord(Example());
  EXPECT_EQ(SeenCounter(bytes, {0xa, 1}), 0x20u);
  EXPECT_EQ(SeenCounter(bytes, {0xb, 0}), 0x30u);
  EXPECT_EQ(SeenCounter(bytes, {0xa, 0}), 0u);
  for (size_t size = 0; size < 36; ++size)
    EXPECT_EQ(SeenCounter(bytes.substr(0, size), {0xa, 1}), 0u) << size;
}

TEST(MergeBytes, ReturnsASideWhenTheMergeEqualsIt) {
  Record older;
  ApplyPut(older, ValueOf(DotOf(1, 1)), nullptr);
  Record newer = older;
  ApplyPut(newer, ValueOf(DotOf(1, 2)), nullptr);
  const RecordBytes a = Shared(older);
  const RecordBytes b = Shared(newer);
  constexpr ConflictRule kRule = ConflictRule::kSiblings;
  EXPECT_EQ(*MergeBytes(a, b, kRule), b);
  EXPECT_EQ(*MergeBytes(b, a, kRule), b);
  EXPECT_EQ(*MergeBytes(a, nullptr, kRule), a);
  EXPECT_EQ(*MergeBytes(nullptr, a, kRule), a);
  EXPECT_EQ(*MergeBytes(nullptr, nullptr, kRule), nullptr);
  EXPECT_EQ(*MergeBytes(a, Shared(older), kRule), a);
}

TEST(MergeBytes, IsTheMergeOfTheRecords) {
  for (const ConflictRule rule : {ConflictRule::kSiblings, ConflictRule::kLastWriteWins}) {
    testing::World world(5, rule);
    world.Run(80);
    for (const auto& a : world.history()) {
      for (const auto& b : world.history()) {
        const auto merged = MergeBytes(Shared(a.record), Shared(b.record), rule);
        ASSERT_TRUE(merged.ok());
        ASSERT_EQ(**merged, EncodeRecord(Merge(a.record, b.record, rule)));
      }
    }
  }
}

TEST(MergeBytes, FailsWhenASideIsRotten) {
  const RecordBytes good = Shared(Example());
  const auto rotten = std::make_shared<const std::string>(good->substr(1));
  for (const auto& [ours, theirs] :
       {std::pair<RecordBytes, RecordBytes>{good, rotten}, {rotten, good}, {nullptr, rotten}}) {
    EXPECT_EQ(MergeBytes(ours, theirs, ConflictRule::kSiblings).status().code(), absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace gyre
