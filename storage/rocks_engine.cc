// The engine on RocksDB: a column family for each table, notes as log data of the write-ahead log.
#include "storage/rocks_engine.h"

#include <absl/synchronization/mutex.h>
#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdarg>
#include <filesystem>
#include <memory>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/table.h>
#include <rocksdb/transaction_log.h>
#include <rocksdb/write_batch.h>
#include <set>
#include <utility>

#include "storage/file_check.h"

namespace gyre {
namespace {

// The meta table is the column family that RocksDB always has.
const char* FamilyOf(Table table) {
  switch (table) {
    case Table::kRows:
      return "rows";
    case Table::kHints:
      return "hints";
    case Table::kCollect:
      return "collect";
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
  if (status.IsCorruption() ||
      status.IsPathNotFound()) {  // a file of it that is missing is no passing trouble
    return absl::DataLossError("the store in " + path + " is damaged: " + why +
                               "; what cannot be read of it has to come from other replicas");
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
  // A put of a new key first looks for it: a filter over the newest rows answers without walking their list.
  family.memtable_whole_key_filtering = true;
  family.memtable_prefix_bloom_size_ratio = 0.1;
  family.write_buffer_size = std::max<size_t>(options.write_buffer_bytes / 2, 64 << 10);
  family.compression = rocksdb::kLZ4Compression;
  family.level_compaction_dynamic_level_bytes = true;
  return family;
}

// After a full disk RocksDB would wait until some multiple of its buffers is free, perhaps for ever on a
// small disk, and refuse Resume meanwhile. Resume alone ends the refusal of writes, when its caller finds
// that there is space.
class RecoveryIsOurs final : public rocksdb::EventListener {
 public:
  RecoveryIsOurs(std::string path, std::function<void(const absl::Status&)> met_damage)
      : path_(std::move(path)), met_damage_(std::move(met_damage)) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override {
    if (error->IsCorruption() && met_damage_) met_damage_(StatusOf(*error, path_));
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status error,
                            bool* auto_recovery) override {
    error.PermitUncheckedError();
    *auto_recovery = false;
  }

 private:
  const std::string path_;
  const std::function<void(const absl::Status&)> met_damage_;
};

// RocksDB's own log would stand on the data's disk, and its second line after that is full aborts the
// process. Whatever matters is in the statuses that it returns.
class Silence final : public rocksdb::Logger {
 public:
  Silence() : Logger(rocksdb::InfoLogLevel::HEADER_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

rocksdb::DBOptions DatabaseOptions(const std::string& path, const RocksOptions& options) {
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
  db.info_log = std::make_shared<Silence>();
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.listeners.push_back(std::make_shared<RecoveryIsOurs>(path, options.met_damage));
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

// RocksDB, open: the database and its column families, by table.
struct Opened {
  Opened() = default;
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    for (const rocksdb::Snapshot* snapshot : snapshots) db->ReleaseSnapshot(snapshot);
    for (rocksdb::ColumnFamilyHandle* family : families)
      db->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  }

  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  std::set<const rocksdb::Snapshot*> snapshots;  // that are not released yet
};

absl::StatusOr<std::unique_ptr<Opened>> OpenDatabase(const std::string& path, const RocksOptions& options,
                                                     bool damaged = false) {
  rocksdb::ColumnFamilyOptions family = FamilyOptions(options, rocksdb::NewLRUCache(options.cache_bytes));
  rocksdb::DBOptions database = DatabaseOptions(path, options);
  if (damaged) {
    family.disable_auto_compactions = true;
    database.create_if_missing = false;
    database.paranoid_checks = false;  // or one table that is missing or cut off would hide all others
    database.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
    database.track_and_verify_wals_in_manifest = false;
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (int table = 0; table < kTables; ++table)
    descriptors.emplace_back(FamilyOf(static_cast<Table>(table)), family);
  auto opened = std::make_unique<Opened>();
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(database, path, descriptors, &opened->families, &db);
  if (!status.ok()) return StatusOf(status, path);
  opened->db.reset(db);
  return opened;
}

// Any method but Resume holds mutex_ shared. Resume may open the database anew, for which it holds it alone.
class Database final : public Engine {
 public:
  Database(std::string path, const RocksOptions& options, std::unique_ptr<Opened> opened)
      : path_(std::move(path)), options_(options), opened_(std::move(opened)) {}

  absl::StatusOr<std::string> Get(Table table, std::string_view key) override {
    const absl::ReaderMutexLock lock(&mutex_);
    if (!opened_) return Closed();
    rocksdb::PinnableSlice value;
    const rocksdb::Status status = db().Get(rocksdb::ReadOptions(), Family(table), SliceOf(key), &value);
    if (!status.ok()) return StatusOf(status, path_);
    return value.ToString();
  }

  std::vector<absl::StatusOr<std::string>> MultiGet(Table table, std::span<const std::string> keys) override {
    const absl::ReaderMutexLock lock(&mutex_);
    if (!opened_) return std::vector<absl::StatusOr<std::string>>(keys.size(), Closed());
    std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
    std::vector<rocksdb::PinnableSlice> values(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    db().MultiGet(rocksdb::ReadOptions(), Family(table), keys.size(), slices.data(), values.data(),
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
    const absl::ReaderMutexLock lock(&mutex_);
    if (!opened_) return Closed();
    assert(!writes.empty());
    constexpr size_t kOverhead = 64;  // of one write, and of the batch
    size_t bytes = kOverhead + note.size();
    for (const EngineWrite& write : writes) {
      bytes += kOverhead + write.key.size() + (write.value ? write.value->size() : 0);
    }
    rocksdb::WriteBatch batch(bytes);
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

  absl::Status Sync() override {
    const absl::ReaderMutexLock lock(&mutex_);
    if (!opened_) return Closed();
    return StatusOf(db().SyncWAL(), path_);
  }

  absl::Status Scan(Table table, const KeyRange& range,
                    absl::FunctionRef<bool(std::string_view key, std::string_view value)> visit) override {
    const absl::ReaderMutexLock lock(&mutex_);
    if (!opened_) return Closed();
    return ScanAt(nullptr, table, range, visit);
  }

  absl::StatusOr<std::unique_ptr<EngineSnapshot>> Snapshot() override {
    const absl::MutexLock lock(&mutex_);
    if (!opened_) return Closed();
    const rocksdb::Snapshot* const snapshot = db().GetSnapshot();
    opened_->snapshots.insert(snapshot);
    return std::make_unique<Moment>(*this, opening_, snapshot);
  }

  absl::Status EraseRange(Table table, const KeyRange& range) override {
    const absl::ReaderMutexLock lock(&mutex_);
    if (!opened_) return Closed();
    std::string end = range.end;
    if (end.empty()) {
      const std::unique_ptr<rocksdb::Iterator> last(db().NewIterator(rocksdb::ReadOptions(), Family(table)));
      last->SeekToLast();
      if (!last->Valid()) return StatusOf(last->status(), path_);
      end = last->key().ToString() + '\0';
    }
    if (end <= range.begin) return absl::OkStatus();
    // First the files: what was hidden below one that goes is covered by the range's tombstone, which comes
    // after.
    const rocksdb::Slice first(range.begin);
    const rocksdb::Slice behind(end);
    rocksdb::Status status = rocksdb::DeleteFilesInRange(&db(), Family(table), &first, &behind, false);
    rocksdb::WriteBatch batch;
    if (status.ok()) status = batch.DeleteRange(Family(table), first, behind);
    if (status.ok()) status = Write(batch, Durability::kDisk);
    return StatusOf(status, path_);
  }

  uint64_t LastSequence() const override {
    const absl::ReaderMutexLock lock(&mutex_);
    return opened_ ? db().GetLatestSequenceNumber() : 0;
  }

  absl::Status ReplayNotes(uint64_t sequence, absl::FunctionRef<void(std::string_view note)> visit) override {
    const absl::ReaderMutexLock lock(&mutex_);
    if (!opened_) return Closed();
    const uint64_t last = db().GetLatestSequenceNumber();
    if (sequence == last) return absl::OkStatus();
    // A batch is numbered by its first entry, and takes as many numbers as it has entries.
    uint64_t next = sequence + 1;
    std::unique_ptr<rocksdb::TransactionLogIterator> log;
    rocksdb::Status status = db().GetUpdatesSince(next, &log);
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
    const absl::ReaderMutexLock lock(&mutex_);
    if (!opened_) return size;
    db().GetIntProperty(Family(Table::kRows), rocksdb::DB::Properties::kEstimateNumKeys, &size.keys);
    for (rocksdb::ColumnFamilyHandle* family : opened_->families) {
      for (const std::string& property :
           {rocksdb::DB::Properties::kTotalSstFilesSize, rocksdb::DB::Properties::kCurSizeAllMemTables}) {
        uint64_t bytes = 0;
        if (db().GetIntProperty(family, property, &bytes)) size.bytes += bytes;
      }
    }
    return size;
  }

  // After a failed write RocksDB may go on with the log that failed, and aborts the process at the next write
  // to it: its Resume changes the log only if it finds something to flush. A new start reads what the log
  // holds, and begins another one.
  absl::Status Resume() override {
    const absl::MutexLock lock(&mutex_);
    if (opened_ && !write_failed_) return StatusOf(db().Resume(), path_);
    if (absl::Status status = CheckSpaceToOpen(); !status.ok()) return status;
    opened_.reset();
    ++opening_;
    absl::StatusOr<std::unique_ptr<Opened>> opened = OpenDatabase(path_, options_);
    if (!opened.ok()) return opened.status();
    opened_ = *std::move(opened);
    write_failed_ = false;
    return absl::OkStatus();
  }

 private:
  static constexpr uint64_t kBytesBetweenPrunes = 64 << 20;

  class Moment final : public EngineSnapshot {
   public:
    Moment(Database& database, uint64_t opening, const rocksdb::Snapshot* snapshot)
        : database_(database), opening_(opening), snapshot_(snapshot) {}
    ~Moment() override {
      const absl::MutexLock lock(&database_.mutex_);
      if (!Held()) return;
      database_.opened_->snapshots.erase(snapshot_);
      database_.db().ReleaseSnapshot(snapshot_);
    }

    absl::StatusOr<std::string> Get(Table table, std::string_view key) override {
      const absl::ReaderMutexLock lock(&database_.mutex_);
      if (!Held()) return LetGo();
      rocksdb::ReadOptions read;
      read.snapshot = snapshot_;
      rocksdb::PinnableSlice value;
      const rocksdb::Status status = database_.db().Get(read, database_.Family(table), SliceOf(key), &value);
      if (!status.ok()) return StatusOf(status, database_.path_);
      return value.ToString();
    }

    absl::Status Scan(Table table, const KeyRange& range,
                      absl::FunctionRef<bool(std::string_view key, std::string_view value)> visit) override {
      const absl::ReaderMutexLock lock(&database_.mutex_);
      if (!Held()) return LetGo();
      return database_.ScanAt(snapshot_, table, range, visit);
    }

   private:
    bool Held() const ABSL_SHARED_LOCKS_REQUIRED(database_.mutex_) {
      return opening_ == database_.opening_ && database_.opened_ != nullptr;
    }
    absl::Status LetGo() const {
      return absl::AbortedError("the store in " + database_.path_ +
                                " was opened anew after its disk was full, and what was read of it so far is "
                                "of another moment; begin again");
    }

    Database& database_;
    const uint64_t opening_;
    const rocksdb::Snapshot* const snapshot_;
  };

  // `snapshot`: nullptr for now.
  absl::Status ScanAt(const rocksdb::Snapshot* snapshot, Table table, const KeyRange& range,
                      absl::FunctionRef<bool(std::string_view key, std::string_view value)> visit)
      ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    rocksdb::ReadOptions read;
    read.snapshot = snapshot;
    read.fill_cache = false;  // scans are background work: they must not drive out what clients read
    const rocksdb::Slice end(range.end);
    if (!range.end.empty()) read.iterate_upper_bound = &end;
    const std::unique_ptr<rocksdb::Iterator> entry(db().NewIterator(read, Family(table)));
    for (entry->Seek(range.begin); entry->Valid(); entry->Next()) {
      if (!visit(ViewOf(entry->key()), ViewOf(entry->value()))) break;
    }
    return StatusOf(entry->status(), path_);
  }

  rocksdb::ColumnFamilyHandle* Family(Table table) const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return opened_->families[static_cast<size_t>(table)];
  }

  rocksdb::DB& db() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return *opened_->db; }

  absl::Status Closed() const {
    return absl::UnavailableError("the store in " + path_ +
                                  " could not be opened again after its disk was full");
  }

  // To open writes what memory holds to the disk: while that cannot succeed, the database stays open for
  // reads.
  absl::Status CheckSpaceToOpen() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    uint64_t needed = 4 << 20;
    for (size_t table = 0; opened_ && table < opened_->families.size(); ++table) {
      uint64_t bytes = 0;
      if (db().GetIntProperty(opened_->families[table], rocksdb::DB::Properties::kCurSizeAllMemTables,
                              &bytes)) {
        needed += bytes;
      }
    }
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(path_, error);
    if (error || space.available >= needed) return absl::OkStatus();
    return absl::ResourceExhaustedError("the disk of " + path_ + " is full: it has " +
                                        std::to_string(space.available >> 20) +
                                        " MiB free, and writes need " + std::to_string((needed >> 20) + 1) +
                                        " MiB to go on; free some space");
  }

  rocksdb::Status Write(rocksdb::WriteBatch& batch, Durability durability)
      ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    if (write_failed_) return rocksdb::Status::NoSpace("a write failed before");
    rocksdb::WriteOptions write;
    write.sync = durability == Durability::kDisk;
    rocksdb::Status status = db().Write(write, &batch);
    if (!status.ok()) write_failed_ = true;
    if (bytes_since_prune_.fetch_add(batch.GetDataSize()) + batch.GetDataSize() >= kBytesBetweenPrunes) {
      bytes_since_prune_ = 0;
      PruneLog();
    }
    return status;
  }

  // Deletes the oldest archived logs beyond the limit. What cannot be deleted now is tried again, and
  // RocksDB's own purge comes by every ten minutes: so errors are of no consequence.
  void PruneLog() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    rocksdb::VectorLogPtr logs;  // the oldest first
    if (!db().GetSortedWalFiles(logs).ok()) return;
    uint64_t bytes = 0;
    for (auto log = logs.rbegin(); log != logs.rend(); ++log) {
      if ((*log)->Type() != rocksdb::kArchivedLogFile) continue;
      bytes += (*log)->SizeFileBytes();
      if (bytes > options_.log_bytes_max) db().DeleteFile((*log)->PathName()).PermitUncheckedError();
    }
  }

  const std::string path_;
  const RocksOptions options_;
  mutable absl::Mutex mutex_;
  std::unique_ptr<Opened> opened_ ABSL_GUARDED_BY(mutex_);  // null: it could not be opened again
  uint64_t opening_ ABSL_GUARDED_BY(mutex_) = 0;            // counts them: snapshots die with theirs
  std::atomic<bool> write_failed_ = false;                  // no more writes until Resume
  std::atomic<uint64_t> bytes_since_prune_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> RocksEngine::Open(const std::string& path,
                                                          const RocksOptions& options) {
  if (absl::Status status = CheckFiles(path); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Opened>> opened = OpenDatabase(path, options);
  if (!opened.ok()) return opened.status();
  return std::make_unique<Database>(path, options, *std::move(opened));
}

absl::StatusOr<std::unique_ptr<Engine>> RocksEngine::OpenDamaged(const std::string& path,
                                                                 const std::string& scratch,
                                                                 const RocksOptions& options) {
  if (!std::filesystem::exists(path + "/CURRENT")) {
    return absl::DataLossError("in " + path +
                               " the file CURRENT is missing, which leads to the list of its tables");
  }
  if (absl::Status status = LinkDamaged(path, scratch); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Opened>> opened = OpenDatabase(scratch, options, /*damaged=*/true);
  if (!opened.ok()) return opened.status();
  return std::make_unique<Database>(scratch, options, *std::move(opened));
}

}  // namespace gyre
