// Damage that RocksDB passes over in silence is found in the files; what a crash leaves is not called damage.
#include "storage/file_check.h"

#include <gtest/gtest.h>
#include <set>

#include "tests/storage/rocks_world.h"
#include "tests/storage/rot.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

class FileCheck : public testing::Test {
 protected:
  // One synced batch a row.
  void Write(int rows, size_t value_bytes) {
    for (int i = 0; i < rows; ++i) {
      const EngineWrite write = {Table::kRows, MakeRowKey(0, static_cast<uint64_t>(i) << 50, "k"),
                                 Bytes(std::string(value_bytes, 'v'))};
      ASSERT_TRUE(world_.engine().Apply({&write, 1}, Durability::kDisk, "").ok());
    }
    world_.Close();
    log_ = Largest(world_.path(), ".log");
    ASSERT_FALSE(log_.empty());
  }

  RocksWorld world_{{.cache_bytes = 1 << 20, .write_buffer_bytes = 1 << 20, .log_bytes_max = 64 << 20}};
  fs::path log_;
};

TEST_F(FileCheck, AWholeLogIsWholeWhereverItsBlocksEnd) {
  Write(300, 1000);
  EXPECT_GT(fs::file_size(log_), 9u * (32 << 10));
  EXPECT_TRUE(CheckFiles(world_.path()).ok());
  EXPECT_TRUE(CheckFiles(world_.path() + "/nowhere").ok());
}

TEST_F(FileCheck, ALogThatEndsAnywhereIsWhatACrashLeaves) {
  Write(40, 1000);
  const std::string whole = ContentOf(log_);
  for (size_t size = 0; size < whole.size(); size += 611) {
    Overwrite(log_, whole.substr(0, size));
    EXPECT_TRUE(CheckFiles(world_.path()).ok()) << size;
    Overwrite(log_, whole.substr(0, size) + std::string(5000, '\0'));
    EXPECT_TRUE(CheckFiles(world_.path()).ok()) << size << " and zeros";
  }
}

TEST_F(FileCheck, Case84_ZerosInTheMiddleOfALogAreDamage) {
  Write(300, 1000);
  const std::string whole = ContentOf(log_);
  for (const size_t begin : {size_t{0}, size_t{4096}, size_t{65536}, whole.size() / 2}) {
    std::string holed = whole;
    holed.replace(begin, 4096, 4096, '\0');
    Overwrite(log_, holed);
    const absl::Status status = CheckFiles(world_.path());
    EXPECT_TRUE(absl::IsDataLoss(status)) << begin << ": " << status;
    EXPECT_NE(std::string(status.message()).find(log_.filename()), std::string::npos) << status;
  }
}

// Whatever byte of the log rots: the store is refused, or all is there but the last batch, which might have
// been torn. (RocksDB alone drops all that is behind a length which leads beyond the end.)
TEST_F(FileCheck, Case84_NoByteOfALogThatRotsTakesASyncedWriteWithItInSilence) {
  constexpr int kRows = 6;
  Write(kRows, 20);
  const std::string whole = ContentOf(log_);
  const std::map<std::string, std::string> files = FilesOf(world_.path());
  std::set<size_t> places;  // of headers (checksum, length, kind), and some between them
  for (size_t place = 0; place + 7 <= whole.size();) {
    places.insert({place, place + 4, place + 5, place + 6});
    place += 7 + static_cast<uint8_t>(whole[place + 4]) + 256u * static_cast<uint8_t>(whole[place + 5]);
  }
  for (size_t place = 0; place < whole.size(); place += 11) places.insert(place);
  int refused = 0;
  for (const size_t place : places) {
    for (const int bits : {0x01, 0x80}) {
      FlipByte(log_, place, bits);
      absl::StatusOr<std::unique_ptr<Engine>> engine = RocksEngine::Open(world_.path());
      if (!engine.ok()) {
        EXPECT_TRUE(absl::IsDataLoss(engine.status())) << engine.status();
        ++refused;
        Overwrite(log_, whole);
        continue;
      }
      EXPECT_GE(Contents(**engine, Table::kRows).size(), kRows - 1u) << "byte " << place << ", bits " << bits;
      engine->reset();  // it has written
      for (const fs::directory_entry& entry : fs::directory_iterator(world_.path()))
        fs::remove_all(entry.path());
      for (const auto& [path, content] : files) Overwrite(path, content);
    }
  }
  EXPECT_GT(refused, 0);
}

TEST_F(FileCheck, Case90_AStoreWithoutItsCurrentIsNotTakenForANewOne) {
  Write(3, 20);
  fs::remove(fs::path(world_.path()) / "CURRENT");
  const absl::Status status = RocksEngine::Open(world_.path()).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(std::string(status.message()).find("CURRENT"), std::string::npos) << status;
  EXPECT_TRUE(fs::exists(log_));
}

}  // namespace
}  // namespace gyre
