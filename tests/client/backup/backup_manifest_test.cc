// The manifest: read as written, every damage noticed, and no name that leads out of the backup.
#include "client/backup/place.h"
#include "tests/client/backup/backup_world.h"

namespace gyre::backup {
namespace {

using absl::StatusCode;

Manifest Sample() {
  const Manifest::Chunk a = {.name = Sha256Hex("a"), .rows = 3, .bytes = 100};
  const Manifest::Chunk b = {.name = Sha256Hex("b"), .rows = 4, .bytes = 200};
  return ManifestOf(
      {{.id = "00000000000000aa",
        .stable_cut = 0xfedcba9876543210,
        .complete = {{.keyspace = 1, .begin = UINT64_MAX, .end = 5}},
        .runs = {{.hints_for = "", .chunks = {a, b}}, {.hints_for = "00000000000000cc", .chunks = {a}}}},
       {.id = "00000000000000bb", .stable_cut = 0, .complete = {}, .runs = {}}});
}

// The text with its checksum made right again, as somebody who forges it would.
std::string Forged(std::string text, const std::string& what, const std::string& by) {
  const size_t last = text.rfind("{\"sha256\"");
  text.resize(last);
  const size_t at = text.find(what);
  EXPECT_NE(at, text.npos);
  text.replace(at, what.size(), by);
  return text + "{\"sha256\":\"" + Sha256Hex(text) + "\"}\n";
}

std::string Nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(BackupManifest, ReadsWhatItWrote) {
  const Manifest written = Sample();
  const absl::StatusOr<Manifest> read = DecodeManifest(EncodeManifest(written));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->cluster_id, 7u);
  EXPECT_EQ(read->made_at_ms, written.made_at_ms);
  EXPECT_EQ(read->chunk_rows, 64u);
  EXPECT_EQ(read->nodes, written.nodes);
  ASSERT_EQ(read->keyspaces.size(), 1u);
  EXPECT_EQ(read->keyspaces[0].name, "default");
  EXPECT_EQ(read->keyspaces[0].w, Replicas::Count(2));
  EXPECT_EQ(EncodeManifest(*read), EncodeManifest(written));
  const Totals totals = TotalsOf(*read);
  EXPECT_EQ(totals.files, 2u);
  EXPECT_EQ(totals.bytes, 300u);
  EXPECT_EQ(totals.rows, 10u);
}

TEST(BackupManifest, NoticesEveryFlippedBitAndEveryCut) {
  const std::string text = EncodeManifest(Sample());
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(flipped).status())) << bit;
  }
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(text.substr(0, size)).status())) << size;
  }
}

TEST(BackupManifest, RefusesNamesThatLeadElsewhere) {
  const std::string text = EncodeManifest(Sample());
  const std::string name = Sha256Hex("a");
  for (const std::string& bad : {std::string("../../etc/passwd"), std::string("/etc/passwd"), name.substr(1),
                                 "../" + name.substr(3), name + "/x", std::string()}) {
    const absl::Status status = DecodeManifest(Forged(text, name, bad)).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << bad;
    EXPECT_NE(status.message().find("\"" + bad + "\""), absl::string_view::npos) << status;
  }
}

TEST(BackupManifest, RefusesWhatIsNotOfTheRightKindOrOfALaterFormat) {
  const std::string text = EncodeManifest(Sample());
  EXPECT_TRUE(absl::IsUnimplemented(DecodeManifest(Forged(text, "\"format\":1", "\"format\":2")).status()));
  const std::pair<const char*, std::string> kWrong[] = {
      {"\"format\":1", "\"format\":\"1\""},
      {"\"format\":1,", ""},
      {"\"chunk_rows\":64", "\"chunk_rows\":63"},
      {"\"n\":3", "\"n\":-3"},
      {"\"quorum\"", "\"some\""},
      {" 3 100", " 3"},
      {" 3 100", " 3 1e2"},
      {"\"chunks\":[", "\"chunks\":[7,"},
      {"fedcba9876543210", "gedcba9876543210"},
      {"{\"format\"", "[\"format\""},
      {"\"begin\":\"", "\"begin\":\"x"},
      {"\"w\":2", "\"w\":18446744073709551615"},
      {"\"w\":2", "\"w\":" + Nested(1'000'000)},
  };
  for (const auto& [what, by] : kWrong) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(Forged(text, what, by)).status())) << what << " -> " << by;
  }
}

TEST(RestorePlace, ReadsWhatItWroteAndNothingElse) {
  const Place place = {.manifest = Sha256Hex("m"),
                       .overwrite = true,
                       .restore = std::string(16, '\xfe'),
                       .row_key = MakeRowKey(1, 2, std::string("\0\xff", 2)),
                       .keys = 5,
                       .written = 3,
                       .kept = 2};
  const std::string text = EncodePlace(place);
  EXPECT_EQ(DecodePlace(text), place);
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(DecodePlace(flipped), std::nullopt) << bit;
  }
  // Nor what is of another kind, under a right hash.
  const std::string json = text.substr(0, text.find('\n') + 1);
  for (const std::string& keys : {std::string("-5"), std::string("5.5"), std::string("1e300"),
                                  std::string("\"5\""), Nested(1'000'000)}) {
    std::string other = json;
    other.replace(other.find("\"keys\":5"), 8, "\"keys\":" + keys);
    EXPECT_EQ(DecodePlace(other + Sha256Hex(other) + "\n"), std::nullopt) << keys.substr(0, 10);
  }
  EXPECT_EQ(PlaceName(0xab), "restore-00000000000000ab.json");
}

}  // namespace
}  // namespace gyre::backup
