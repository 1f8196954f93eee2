// What is left of a damaged store of RocksDB.
//
// RocksDB keeps its entries in files, which are rows of blocks, and merges the files while it reads: those of
// level 0 may each hold any keys, those of a lower level share out the keys among them, and the higher file
// is the newer. A block that cannot be read ends the merge, whatever the other files hold there. So the files
// are read one by one from there to where they can be merged again, and each block that cannot be read is
// passed over, and no more than that. (The logs are no concern: on opening, RocksDB wrote what they hold to
// files.)
#include <algorithm>
#include <filesystem>
#include <memory>
#include <rocksdb/metadata.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>
#include <string>
#include <utility>
#include <vector>

#include "storage/file_check.h"
#include "storage/remains.h"
#include "storage/rocks_open.h"

namespace gyre {
namespace {

struct File {
  std::string path;
  std::string smallest;  // key
  std::string largest;
  std::string damaged_to;  // up to where the place that was met last cannot be read
};

// Reads the files one by one from where they cannot be merged to where they can again.
class Detour {
 public:
  Detour(const OpenedRocks& opened, std::string path, Table table, Remains::Reader& reader)
      : db_(*opened.db), family_(opened.Family(table)), path_(std::move(path)), reader_(reader) {
    read_.fill_cache = false;
    read_.iterate_upper_bound = &upper_bound_;
  }

  // `files`: the newest first. Returns how far it read, at most to the end of `range`, which is all that
  // there is to read if `more()`.
  absl::StatusOr<std::string> Read(std::vector<File>& files, const KeyRange& range) {
    // So that no file begins on the way.
    end_ = range.end;
    for (const File& file : files) {
      if (file.smallest > range.begin) end_ = std::min(end_, file.smallest);
    }
    upper_bound_ = rocksdb::Slice(end_);
    mergeable_from_ = range.begin;
    cursors_.clear();
    for (File& file : files) {
      if (file.smallest > range.begin || file.largest < range.begin) continue;
      if (absl::Status status = Open(file, range.begin); !status.ok()) return status;
    }
    while (more_) {
      const Cursor* newest = nullptr;  // of those that are at the first key
      for (const Cursor& cursor : cursors_) {
        if (cursor.AtEntry() && (newest == nullptr || cursor.key() < newest->key())) newest = &cursor;
      }
      if (newest == nullptr) return end_;
      if (mergeable_from_ > range.begin && newest->key() >= mergeable_from_) return mergeable_from_;
      const std::string key(newest->key());
      if (absl::Status status = Tell(key, ViewOf(newest->entry->value())); !status.ok()) return status;
      for (Cursor& cursor : cursors_) {
        if (!cursor.AtEntry() || cursor.key() != key) continue;
        cursor.entry->Next();
        if (cursor.entry->status().ok()) continue;
        if (absl::Status status = Seek(cursor, key + '\0'); !status.ok()) return status;
      }
    }
    return end_;
  }

  bool more() const { return more_; }

 private:
  struct Cursor {
    File* file;
    std::unique_ptr<rocksdb::SstFileReader> reader;
    std::unique_ptr<rocksdb::Iterator> entry;

    bool AtEntry() const { return entry != nullptr && entry->Valid(); }
    std::string_view key() const { return ViewOf(entry->key()); }
  };

  absl::Status Open(File& file, const std::string& begin) {
    Cursor cursor = {&file, std::make_unique<rocksdb::SstFileReader>(db_.GetOptions(family_)), nullptr};
    rocksdb::Status opened = cursor.reader->Open(file.path);
    if (opened.ok()) {
      cursor.entry.reset(cursor.reader->NewIterator(read_));
      opened = cursor.entry->status();  // of the index of its blocks
    }
    if (opened.ok()) {
      cursors_.push_back(std::move(cursor));
      return Seek(cursors_.back(), begin);
    }
    return PassOver(file, opened, begin, end_);
  }

  // To the first entry not before `from` that can be read.
  absl::Status Seek(Cursor& cursor, std::string from) {
    while (from < end_ && more_) {
      cursor.entry->Seek(from);
      if (cursor.entry->status().ok()) return absl::OkStatus();
      std::string behind = BehindBlock(from);
      if (absl::Status status = PassOver(*cursor.file, cursor.entry->status(), from, behind); !status.ok()) {
        return status;
      }
      from = std::move(behind);
      more_ = more_ && reader_.GoOn();
    }
    cursor.entry.reset();
    return absl::OkStatus();
  }

  absl::Status PassOver(File& file, const rocksdb::Status& why, const std::string& from,
                        const std::string& behind) {
    const absl::Status what = StatusOf(why, path_);
    if (!absl::IsDataLoss(what)) return what;
    if (file.damaged_to != from) reader_.Damage(what);
    file.damaged_to = behind;
    mergeable_from_ = std::max(mergeable_from_, behind);
    return absl::OkStatus();
  }

  // The first key behind `key` at which some file goes on in another block; at most end_. Found by RocksDB's
  // estimates of sizes, which rest on the indexes of blocks alone: keys of one block have nothing between
  // them.
  std::string BehindBlock(const std::string& key) const {
    constexpr size_t kKeyBytesMax = 8 << 10;  // more than any key has
    if (!AreApart(key, end_)) return end_;
    std::string last;  // what the last key that is not apart from `key` begins with
    while (last.size() < kKeyBytesMax && !AreApart(key, last + '\0')) {
      int digit = 0;
      for (int step = 128; step > 0; step /= 2) {
        if (!AreApart(key, last + static_cast<char>(digit + step))) digit += step;
      }
      last.push_back(static_cast<char>(digit));
    }
    return last + '\0';
  }

  bool AreApart(const std::string& key, const std::string& other) const {
    if (other <= key) return false;
    const rocksdb::Range range(key, other);
    uint64_t bytes = 0;
    db_.GetApproximateSizes(rocksdb::SizeApproximationOptions(), family_, &range, 1, &bytes)
        .PermitUncheckedError();
    return bytes > 0;
  }

  // Files that are read on their own do not show what was erased in them. RocksDB's look-up of one key does,
  // and it ends at the newest file that has something to say of the key: so it meets damage only where
  // that may hide something newer than `value`, the newest that can be read.
  absl::Status Tell(const std::string& key, std::string_view value) {
    rocksdb::PinnableSlice found;
    const absl::Status status = StatusOf(db_.Get(read_, family_, key, &found), path_);
    if (absl::IsNotFound(status)) return absl::OkStatus();
    if (!status.ok() && !absl::IsDataLoss(status)) return status;
    more_ = reader_.Entry(key, status.ok() ? ViewOf(found) : value);
    return absl::OkStatus();
  }

  rocksdb::DB& db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const std::string path_;
  Remains::Reader& reader_;
  rocksdb::ReadOptions read_;
  std::string end_;
  rocksdb::Slice upper_bound_;
  std::vector<Cursor> cursors_;  // the newest first
  std::string mergeable_from_;   // behind all damage that was met
  bool more_ = true;
};

class RocksRemains final : public Remains {
 public:
  RocksRemains(const std::string& path, const RocksOptions& options, std::shared_ptr<OpenedRocks> opened)
      : path_(path), opened_(std::move(opened)), engine_(MakeRocksEngine(path, options, opened_)) {}

  Engine& engine() override { return *engine_; }

  absl::Status Scan(Table table, const KeyRange& range, Reader& reader) override {
    std::vector<File> files = FilesOf(table);
    Detour detour(*opened_, path_, table, reader);
    KeyRange left = range;
    bool more = true;
    while (more && left.begin < left.end) {
      const absl::Status merged =
          engine_->Scan(table, left, [&](std::string_view key, std::string_view value) {
            left.begin.assign(key).push_back('\0');
            return more = reader.Entry(key, value);
          });
      if (!absl::IsDataLoss(merged)) return merged;
      absl::StatusOr<std::string> next = detour.Read(files, left);
      if (!next.ok()) return next.status();
      left.begin = *std::move(next);
      more = detour.more();
    }
    return absl::OkStatus();
  }

 private:
  // The newest first.
  std::vector<File> FilesOf(Table table) const {
    rocksdb::ColumnFamilyMetaData family;
    opened_->db->GetColumnFamilyMetaData(opened_->Family(table), &family);
    std::vector<File> files;
    for (const rocksdb::LevelMetaData& level : family.levels) {
      std::vector<rocksdb::SstFileMetaData> of_level = level.files;
      if (level.level == 0) {
        std::ranges::sort(of_level, std::greater(), &rocksdb::SstFileMetaData::largest_seqno);
      }
      for (const rocksdb::SstFileMetaData& file : of_level) {
        files.push_back(
            {file.directory + "/" + file.relative_filename, file.smallestkey, file.largestkey, ""});
      }
    }
    return files;
  }

  const std::string path_;
  const std::shared_ptr<OpenedRocks> opened_;
  const std::unique_ptr<Engine> engine_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Remains>> RocksEngine::OpenDamaged(const std::string& path,
                                                                  const std::string& scratch,
                                                                  const RocksOptions& options) {
  if (!std::filesystem::exists(path + "/CURRENT")) {
    return absl::DataLossError("in " + path +
                               " the file CURRENT is missing, which leads to the list of its tables");
  }
  if (absl::Status status = LinkDamaged(path, scratch); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<OpenedRocks>> opened = OpenRocks(scratch, options, /*damaged=*/true);
  if (!opened.ok()) return opened.status();
  return std::make_unique<RocksRemains>(scratch, options, *std::move(opened));
}

}  // namespace gyre
