// The engine on RocksDB: a column family for each table, notes as log data of the write-ahead log.
#include "storage/rocks_engine.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_manager.h>
#include <rocksdb/table.h>
#include <rocksdb/transaction_log.h>
#include <rocksdb/write_batch.h>
#include <utility>

namespace gyre {
namespace {

// The meta table is the column family that RocksDB always has.
const char* FamilyOf(Table table) {
  switch (table) {
    case Table::kRows:
      return "rows";
    case Table::kHints:
      return "hints";
    case Table::kMeta:
      break;
  }
  return rocksdb::kDefaultColumnFamilyName.c_str();
}

rocksdb::Slice SliceOf(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view ViewOf(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// One of Engine's errors, as a sentence that names the directory.
absl::Status StatusOf(const rocksdb::Status& status, const std::string& path) {
  if (status.ok()) return absl::OkStatus();
  const std::string why = status.ToString();
  if (status.IsNotFound()) return absl::NotFoundError("no such entry in " + path);
  if (status.IsCorruption()) {
    return absl::DataLossError("the store in " + path + " is damaged: " + why +
                               "; repair it from replicas, or replace the node");
  }
  if (status.IsNoSpace() || status.subcode() == rocksdb::Status::SubCode::kSpaceLimit) {
    return absl::ResourceExhaustedError("the disk of " + path + " is full: " + why + "; free some space");
  }
  if (status.IsIOError() && why.find("lock") != std::string::npos) {
    return absl::UnavailableError("the data directory " + path + " is in use by another process: " + why +
                                  "; stop that process, or choose another directory");
  }
  return absl::UnavailableError("the disk of " + path + " refuses: " + why +
                                "; check the disk and its file system");
}

rocksdb::ColumnFamilyOptions FamilyOptions(const RocksOptions& options,
                                           std::shared_ptr<rocksdb::Cache> cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = std::move(cache);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));  // most puts look up a key that is not there
  table.block_size = 8 << 10;
  table.cache_index_and_filter_blocks = true;  // or they would grow with the data, outside of any limit
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.format_version = 5;
  rocksdb::ColumnFamilyOptions family;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  family.write_buffer_size = std::max<size_t>(options.write_buffer_bytes / 2, 64 << 10);
  family.compression = rocksdb::kLZ4Compression;
  family.level_compaction_dynamic_level_bytes = true;
  return family;
}

rocksdb::DBOptions DatabaseOptions(const RocksOptions& options) {
  rocksdb::DBOptions db;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  db.paranoid_checks = true;
  // A crash tears the end of the log, which is tolerated: nothing there was acknowledged. Damage anywhere
  // else makes Open fail; recovery to a point in time would drop everything behind it in silence.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  // A synced log that went missing or lost its end is noticed too.
  db.track_and_verify_wals_in_manifest = true;
  // Old logs go to an archive, where ReplayNotes finds them. RocksDB looks at its size only every ten
  // minutes, so PruneLog does so in between.
  db.WAL_size_limit_MB = std::max<uint64_t>(options.log_bytes_max >> 20, 1);
  db.max_total_wal_size = options.write_buffer_bytes;  // bounds how long opening takes
  db.db_write_buffer_size = options.write_buffer_bytes;
  db.max_background_jobs = 2;
  db.max_open_files = 512;
  db.bytes_per_sync = 1 << 20;
  db.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  db.max_log_file_size = 4 << 20;
  db.keep_log_file_num = 2;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  // Watches for free space, and ends the refusal of writes after a full disk.
  db.sst_file_manager.reset(rocksdb::NewSstFileManager(rocksdb::Env::Default()));
  return db;
}

// Hands on the notes of one batch.
class NoteReader final : public rocksdb::WriteBatch::Handler {
 public:
  explicit NoteReader(absl::FunctionRef<void(std::string_view note)> visit) : visit_(visit) {}
  void LogData(const rocksdb::Slice& note) override { visit_(ViewOf(note)); }
  rocksdb::Status PutCF(uint32_t, const rocksdb::Slice&, const rocksdb::Slice&) override { return {}; }
  rocksdb::Status DeleteCF(uint32_t, const rocksdb::Slice&) override { return {}; }
  rocksdb::Status DeleteRangeCF(uint32_t, const rocksdb::Slice&, const rocksdb::Slice&) override {
    return {};
  }

 private:
  absl::FunctionRef<void(std::string_view note)> visit_;
};

class Database final : public Engine {
 public:
  Database(std::string path, const RocksOptions& options, std::unique_ptr<rocksdb::DB> db,
           std::vector<rocksdb::ColumnFamilyHandle*> families)
      : path_(std::move(path)), options_(options), db_(std::move(db)), families_(std::move(families)) {}

  ~Database() override {
    for (rocksdb::ColumnFamilyHandle* family : families_)
      db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  }

  absl::StatusOr<std::string> Get(Table table, std::string_view key) override {
    rocksdb::PinnableSlice value;
    const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), Family(table), SliceOf(key), &value);
    if (!status.ok()) return StatusOf(status, path_);
    return value.ToString();
  }

  std::vector<absl::StatusOr<std::string>> MultiGet(Table table, std::span<const std::string> keys) override {
    std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
    std::vector<rocksdb::PinnableSlice> values(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    db_->MultiGet(rocksdb::ReadOptions(), Family(table), keys.size(), slices.data(), values.data(),
                  statuses.data());
    std::vector<absl::StatusOr<std::string>> results;
    results.reserve(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (statuses[i].ok()) {
        results.push_back(values[i].ToString());
      } else {
        results.push_back(StatusOf(statuses[i], path_));
      }
    }
    return results;
  }

  absl::Status Apply(std::span<const EngineWrite> writes, Durability durability,
                     std::string_view note) override {
    assert(!writes.empty());
    rocksdb::WriteBatch batch;
    rocksdb::Status status;
    for (const EngineWrite& write : writes) {
      if (!status.ok()) break;
      status = write.value ? batch.Put(Family(write.table), write.key, *write.value)
                           : batch.Delete(Family(write.table), write.key);
    }
    if (status.ok() && !note.empty()) status = batch.PutLogData(SliceOf(note));
    if (status.ok()) status = Write(batch, durability);
    return StatusOf(status, path_);
  }

  absl::Status Sync() override { return StatusOf(db_->SyncWAL(), path_); }

  absl::Status Scan(Table table, const KeyRange& range,
                    absl::FunctionRef<bool(std::string_view key, std::string_view value)> visit) override {
    rocksdb::ReadOptions read;
    read.fill_cache = false;  // scans are background work: they must not drive out what clients read
    const rocksdb::Slice end(range.end);
    if (!range.end.empty()) read.iterate_upper_bound = &end;
    const std::unique_ptr<rocksdb::Iterator> entry(db_->NewIterator(read, Family(table)));
    for (entry->Seek(range.begin); entry->Valid(); entry->Next()) {
      if (!visit(ViewOf(entry->key()), ViewOf(entry->value()))) break;
    }
    return StatusOf(entry->status(), path_);
  }

  absl::Status EraseRange(Table table, const KeyRange& range) override {
    std::string end = range.end;
    if (end.empty()) {
      const std::unique_ptr<rocksdb::Iterator> last(db_->NewIterator(rocksdb::ReadOptions(), Family(table)));
      last->SeekToLast();
      if (!last->Valid()) return StatusOf(last->status(), path_);
      end = last->key().ToString() + '\0';
    }
    if (end <= range.begin) return absl::OkStatus();
    // First the files: what was hidden below one that goes is covered by the range's tombstone, which comes
    // after.
    const rocksdb::Slice first(range.begin);
    const rocksdb::Slice behind(end);
    rocksdb::Status status = rocksdb::DeleteFilesInRange(db_.get(), Family(table), &first, &behind, false);
    rocksdb::WriteBatch batch;
    if (status.ok()) status = batch.DeleteRange(Family(table), first, behind);
    if (status.ok()) status = Write(batch, Durability::kDisk);
    return StatusOf(status, path_);
  }

  uint64_t LastSequence() const override { return db_->GetLatestSequenceNumber(); }

  absl::Status ReplayNotes(uint64_t sequence, absl::FunctionRef<void(std::string_view note)> visit) override {
    const uint64_t last = LastSequence();
    if (sequence == last) return absl::OkStatus();
    // A batch is numbered by its first entry, and takes as many numbers as it has entries.
    uint64_t next = sequence + 1;
    std::unique_ptr<rocksdb::TransactionLogIterator> log;
    rocksdb::Status status = db_->GetUpdatesSince(next, &log);
    NoteReader reader(visit);
    for (; status.ok() && next <= last && log->Valid(); log->Next()) {
      const rocksdb::BatchResult batch = log->GetBatch();
      const uint64_t behind = batch.sequence + batch.writeBatchPtr->Count();
      if (batch.sequence > next) break;
      if (behind <= next) continue;
      next = behind;
      status = batch.writeBatchPtr->Iterate(&reader);
    }
    if (status.ok() && next > last) return absl::OkStatus();
    if (status.ok() && log != nullptr) status = log->status();
    return absl::DataLossError("the log of " + path_ + " has no unbroken way from batch " +
                               std::to_string(sequence) + " to " + std::to_string(last) +
                               " (it ends before " + std::to_string(next) + ": " + status.ToString() +
                               "); recount what its notes would have told");
  }

  Size EstimateSize() override {
    Size size;
    db_->GetIntProperty(Family(Table::kRows), rocksdb::DB::Properties::kEstimateNumKeys, &size.keys);
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      for (const std::string& property :
           {rocksdb::DB::Properties::kTotalSstFilesSize, rocksdb::DB::Properties::kCurSizeAllMemTables}) {
        uint64_t bytes = 0;
        if (db_->GetIntProperty(family, property, &bytes)) size.bytes += bytes;
      }
    }
    return size;
  }

  absl::Status Resume() override { return StatusOf(db_->Resume(), path_); }

 private:
  static constexpr uint64_t kBytesBetweenPrunes = 64 << 20;

  rocksdb::ColumnFamilyHandle* Family(Table table) const { return families_[static_cast<size_t>(table)]; }

  rocksdb::Status Write(rocksdb::WriteBatch& batch, Durability durability) {
    rocksdb::WriteOptions write;
    write.sync = durability == Durability::kDisk;
    rocksdb::Status status = db_->Write(write, &batch);
    if (bytes_since_prune_.fetch_add(batch.GetDataSize()) + batch.GetDataSize() >= kBytesBetweenPrunes) {
      bytes_since_prune_ = 0;
      PruneLog();
    }
    return status;
  }

  // Deletes the oldest archived logs beyond the limit. What cannot be deleted now is tried again, and
  // RocksDB's own purge comes by every ten minutes: so errors are of no consequence.
  void PruneLog() {
    rocksdb::VectorLogPtr logs;  // the oldest first
    if (!db_->GetSortedWalFiles(logs).ok()) return;
    uint64_t bytes = 0;
    for (auto log = logs.rbegin(); log != logs.rend(); ++log) {
      if ((*log)->Type() != rocksdb::kArchivedLogFile) continue;
      bytes += (*log)->SizeFileBytes();
      if (bytes > options_.log_bytes_max) db_->DeleteFile((*log)->PathName()).PermitUncheckedError();
    }
  }

  const std::string path_;
  const RocksOptions options_;
  const std::unique_ptr<rocksdb::DB> db_;
  const std::vector<rocksdb::ColumnFamilyHandle*> families_;  // by table
  std::atomic<uint64_t> bytes_since_prune_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> RocksEngine::Open(const std::string& path,
                                                          const RocksOptions& options) {
  const rocksdb::ColumnFamilyOptions family =
      FamilyOptions(options, rocksdb::NewLRUCache(options.cache_bytes));
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (int table = 0; table < kTables; ++table)
    descriptors.emplace_back(FamilyOf(static_cast<Table>(table)), family);
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(DatabaseOptions(options), path, descriptors, &families, &db);
  if (!status.ok()) return StatusOf(status, path);
  return std::make_unique<Database>(path, options, std::unique_ptr<rocksdb::DB>(db), std::move(families));
}

}  // namespace gyre
