// Whatever blocks of whatever files of a store rot: of each row the newest version that lies in a whole block
// is salvaged, once.
//
// Values are random bytes, which no compression changes, and bear a mark. So a test finds in the files where
// each version of each row lies, and knows what it destroys.
#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <rocksdb/metadata.h>
#include <set>

#include "storage/rocks_open.h"
#include "storage/salvage.h"
#include "tests/storage/rocks_world.h"
#include "tests/storage/rot.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

constexpr int kRows = 60;
constexpr size_t kBlockBytes = 8 << 10;
constexpr std::string_view kMark = "A version that is written: ";
constexpr size_t kNumberBytes = 8;

std::string RowKeyOf(int row) {
  return MakeRowKey(static_cast<uint32_t>(row % 2), static_cast<uint64_t>(row) * 0x9e3779b97f4a7c15,
                    "key" + std::to_string(row));
}

// What was written of a row, one after the other. An erased row has versions without a record.
struct Version {
  size_t number = 0;
  std::string record = {};
};

// Where a version lies in a file.
struct Place {
  fs::path file;
  size_t offset = 0;
};

enum class Readable : uint8_t { kYes, kNo, kPerhaps };

// A store with rows in several levels, several files of level 0, and the log.
class RottingStore {
 public:
  RottingStore(int seed, size_t value_bytes) : random_(seed), value_bytes_(value_bytes) {
    world_.Close();
    absl::StatusOr<std::shared_ptr<OpenedRocks>> opened = OpenRocks(path(), {});
    EXPECT_TRUE(opened.ok()) << opened.status();
    opened_ = *std::move(opened);
    // Files of a few blocks, merged when the test says so.
    EXPECT_TRUE(
        opened_->db
            ->SetOptions(family(), {{"target_file_size_base", "65536"}, {"disable_auto_compactions", "true"}})
            .ok());
  }

  void Fill() {
    for (int row = 0; row < kRows; ++row) Put(row);
    Merge(6);
    for (int i = 0; i < kRows / 2; ++i) Change();
    Merge(5);
    for (int file = 0; file < 3; ++file) {
      for (int i = 0; i < kRows / 5; ++i) Change();
      Flush();
    }
    for (int i = 0; i < kRows / 10; ++i) Change();
  }

  void Put(int row) {
    std::string value(value_bytes_, '\0');
    for (char& byte : value) byte = static_cast<char>(random_());
    std::string number = std::to_string(++written_);
    number.insert(0, kNumberBytes - number.size(), '0');
    value.replace(value_bytes_ / 2, kMark.size() + kNumberBytes, std::string(kMark) + number);
    Record record;
    ApplyPut(record, {.dot = {{1, 0}, written_}, .value = value}, nullptr);
    versions_[row].push_back({written_, EncodeRecord(record)});
    EXPECT_TRUE(
        opened_->db->Put(rocksdb::WriteOptions(), family(), RowKeyOf(row), versions_[row].back().record)
            .ok());
  }
  void Erase(int row) {
    versions_[row].push_back({});
    EXPECT_TRUE(opened_->db->Delete(rocksdb::WriteOptions(), family(), RowKeyOf(row)).ok());
  }
  void Flush() { EXPECT_TRUE(opened_->db->Flush(rocksdb::FlushOptions(), family()).ok()); }
  // All that lies above `level` goes to it.
  void Merge(int level) {
    Flush();
    std::vector<std::string> above;
    for (const rocksdb::LiveFileMetaData& file : Live()) {
      if (file.level < level) above.push_back(file.relative_filename);
    }
    EXPECT_TRUE(opened_->db->CompactFiles(rocksdb::CompactionOptions(), family(), above, level).ok());
  }

  // From now on it is at rest, and may rot.
  void Close() {
    std::set<int> levels;
    for (const rocksdb::LiveFileMetaData& file : Live()) {
      levels.insert(file.level);
      files_.push_back(fs::path(path()) / file.relative_filename);
    }
    levels_ = levels.size();
    opened_.reset();
    for (const fs::path& file : files_) {
      const std::string content = ContentOf(file);
      for (size_t at = content.find(kMark); at != std::string::npos; at = content.find(kMark, at + 1)) {
        places_[std::stoul(content.substr(at + kMark.size(), kNumberBytes))] = {file, at};
      }
    }
  }

  // The block that this version lies in. False: it lies in none, or has done so.
  bool Rot(size_t number) {
    const auto place = places_.find(number);
    if (place == places_.end() || !rotten_numbers_.insert(number).second) return false;
    FlipByte(place->second.file, place->second.offset);
    rotten_.push_back(place->second);
    return true;
  }
  void CutOff(const fs::path& file) {
    fs::resize_file(file, fs::file_size(file) / 2);
    gone_.insert(file);
  }

  Readable CanBeRead(const std::vector<Version>& versions, size_t index) const {
    const auto place = places_.find(versions[index].number);
    if (place == places_.end()) {  // in the log, or merged away
      return index + 1 == versions.size() ? Readable::kYes : Readable::kNo;
    }
    const auto& [file, offset] = place->second;
    if (gone_.contains(file)) return Readable::kNo;
    Readable readable = Readable::kYes;
    for (const Place& rotten : rotten_) {
      if (rotten.file != file) continue;
      const size_t apart = std::max(rotten.offset, offset) - std::min(rotten.offset, offset);
      if (apart == 0) return Readable::kNo;
      // A block has at most this and one row more, and no more than one of these.
      if (value_bytes_ < kBlockBytes && apart < kBlockBytes + 2 * value_bytes_) readable = Readable::kPerhaps;
    }
    return readable;
  }

  // What was salvaged of a row is the newest version of it that can be read. One that was erased may be gone.
  void ExpectNewestReadable(const std::map<std::string, std::string>& rows) const {
    for (const auto& [row, versions] : versions_) {
      SCOPED_TRACE("row " + std::to_string(row));
      const auto found = rows.find(RowKeyOf(row));
      bool erased = false;
      for (size_t index = versions.size(); index-- > 0;) {
        if (versions[index].record.empty()) {
          erased = true;
          continue;
        }
        const Readable readable = CanBeRead(versions, index);
        if (found != rows.end() && found->second == versions[index].record) {
          EXPECT_NE(readable, Readable::kNo);
          break;
        }
        if (readable != Readable::kYes) continue;
        EXPECT_TRUE(found == rows.end()) << "an older version than " << index << " was salvaged";
        EXPECT_TRUE(erased) << "version " << index << " was not salvaged";
        break;
      }
    }
  }

  size_t Next(size_t below) { return random_() % below; }
  std::string path() const { return world_.path(); }
  size_t levels() const { return levels_; }
  size_t written() const { return written_; }
  const std::vector<fs::path>& files() const { return files_; }
  const std::vector<Version>& versions(int row) const { return versions_.at(row); }

 private:
  rocksdb::ColumnFamilyHandle* family() const { return opened_->Family(Table::kRows); }
  void Change() {
    const int row = static_cast<int>(Next(kRows));
    if (Next(8) > 0) {
      Put(row);
    } else {
      Erase(row);
    }
  }
  std::vector<rocksdb::LiveFileMetaData> Live() const {
    std::vector<rocksdb::LiveFileMetaData> live;
    opened_->db->GetLiveFilesMetaData(&live);
    std::erase_if(live, [](const auto& file) { return file.column_family_name != "rows"; });
    return live;
  }

  RocksWorld world_;
  std::shared_ptr<OpenedRocks> opened_;
  std::mt19937_64 random_;
  const size_t value_bytes_;
  size_t written_ = 0;
  std::map<int, std::vector<Version>> versions_;
  std::vector<fs::path> files_;
  size_t levels_ = 0;
  std::map<size_t, Place> places_;
  std::set<size_t> rotten_numbers_;
  std::vector<Place> rotten_;
  std::set<fs::path> gone_;
};

class SalvageOfRot : public testing::Test {
 protected:
  Salvaged Salvage(const RottingStore& store) {
    const auto damaged = RocksEngine::OpenDamaged(store.path(), directory_.path() + "/scratch");
    EXPECT_TRUE(damaged.ok()) << damaged.status();
    if (!damaged.ok()) return {};
    Store fresh(fresh_.engine());
    const absl::StatusOr<Salvaged> salvaged = gyre::Salvage(**damaged, fresh, [] { return true; });
    EXPECT_TRUE(salvaged.ok()) << salvaged.status();
    if (!salvaged.ok()) return {};
    rows_ = Contents(fresh_.engine(), Table::kRows);
    EXPECT_EQ(salvaged->rows, rows_.size());
    EXPECT_EQ(fresh.Verify()->differences, 0u);  // the sums count each row once
    return *salvaged;
  }
  bool Has(const RottingStore& store, int row, size_t version) const {
    const auto found = rows_.find(RowKeyOf(row));
    return found != rows_.end() && found->second == store.versions(row)[version].record;
  }

  RocksWorld fresh_;
  TemporaryDirectory directory_;
  std::map<std::string, std::string> rows_;
};

class SalvageOfRandomRot : public SalvageOfRot,
                           public testing::WithParamInterface<std::tuple<int, size_t>> {};

TEST_P(SalvageOfRandomRot, Case79_TheNewestVersionInAWholeBlockIsCopied) {
  const auto [seed, value_bytes] = GetParam();
  RottingStore store(seed, value_bytes);
  store.Fill();
  store.Close();
  ASSERT_EQ(store.levels(), 3u);
  const size_t rotten = 1 + store.Next(value_bytes > kBlockBytes ? 40 : 4);
  size_t places = 0;
  for (size_t i = 0; i < rotten; ++i) places += store.Rot(1 + store.Next(store.written())) ? 1 : 0;
  if (seed % 4 == 0) store.CutOff(store.files()[store.Next(store.files().size())]);
  const Salvaged salvaged = Salvage(store);
  store.ExpectNewestReadable(rows_);
  EXPECT_LE(salvaged.places, places + (seed % 4 == 0 ? 1 : 0));
  EXPECT_EQ(salvaged.places == 0, places == 0 && seed % 4 != 0);
}

// Values for which a block is one row, so that it is known what rots; and some that share one.
INSTANTIATE_TEST_SUITE_P(Seeds, SalvageOfRandomRot,
                         testing::Combine(testing::Range(1, 13), testing::Values(9000, 400)));

// What led to all this: the range of a rotten block was passed over in all files.
TEST_F(SalvageOfRot, Case79_WhatOtherFilesHoldOfTheRangeOfARottenBlockIsCopied) {
  RottingStore store(1, 400);
  for (int row = 0; row < kRows; ++row) store.Put(row);
  store.Merge(6);
  store.Put(7);
  store.Flush();
  for (int row = 0; row < kRows; row += 3) store.Put(row);
  store.Flush();
  store.Close();
  ASSERT_TRUE(store.Rot(store.versions(7)[1].number));  // alone in its block, and its file
  EXPECT_EQ(Salvage(store).places, 1u);
  for (int row = 0; row < kRows; ++row) EXPECT_TRUE(Has(store, row, row % 3 == 0 ? 1 : 0)) << row;
}

TEST_F(SalvageOfRot, Case79_BlocksBetweenRottenOnesAreCopied) {
  RottingStore store(1, 9000);
  for (int row = 0; row < kRows; ++row) store.Put(row);
  store.Merge(6);
  store.Close();
  std::vector<int> in_order(kRows);
  for (int row = 0; row < kRows; ++row) in_order[static_cast<size_t>(row)] = row;
  std::ranges::sort(in_order, {}, RowKeyOf);
  for (size_t i = 0; i < kRows; i += 2) ASSERT_TRUE(store.Rot(store.versions(in_order[i])[0].number));
  EXPECT_EQ(Salvage(store).places, kRows / 2);
  for (size_t i = 0; i < kRows; ++i) EXPECT_EQ(Has(store, in_order[i], 0), i % 2 == 1) << i;
}

TEST_F(SalvageOfRot, WhatCanBeReadToBeErasedIsNotCopied) {
  RottingStore store(1, 9000);
  for (int row = 0; row < kRows; ++row) store.Put(row);
  store.Merge(6);
  for (int row = 0; row < kRows; row += 2) store.Put(row);
  store.Flush();
  for (int row = 0; row < kRows; row += 3) store.Erase(row);
  store.Flush();
  store.Erase(5);  // in the log
  store.Close();
  for (int row = 0; row < kRows; row += 2) ASSERT_TRUE(store.Rot(store.versions(row)[1].number));
  EXPECT_GE(Salvage(store).places, 1u);
  for (int row = 0; row < kRows; ++row) {
    EXPECT_EQ(Has(store, row, 0), row % 3 > 0 && row != 5) << row;
    EXPECT_EQ(rows_.contains(RowKeyOf(row)), row % 3 > 0 && row != 5) << row;
  }
}

}  // namespace
}  // namespace gyre
