// The engine on RocksDB: a column family for each table, notes as log data of the write-ahead log.
#include "storage/rocks_engine.h"

#include <absl/synchronization/mutex.h>
#include <algorithm>
#include <atomic>
#include <cassert>
#include <filesystem>
#include <memory>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/transaction_log.h>
#include <rocksdb/write_batch.h>
#include <utility>

#include "storage/file_check.h"
#include "storage/rocks_open.h"

namespace gyre {
namespace {

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

// Any method but Resume holds mutex_ shared. Resume may open the database anew, for which it holds it alone.
class Database final : public Engine {
 public:
  Database(std::string path, const RocksOptions& options, std::shared_ptr<OpenedRocks> opened)
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
    absl::StatusOr<std::shared_ptr<OpenedRocks>> opened = OpenRocks(path_, options_);
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
    return opened_->Family(table);
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
  std::shared_ptr<OpenedRocks> opened_ ABSL_GUARDED_BY(mutex_);  // null: it could not be opened again
  uint64_t opening_ ABSL_GUARDED_BY(mutex_) = 0;                 // counts them: snapshots die with theirs
  std::atomic<bool> write_failed_ = false;                       // no more writes until Resume
  std::atomic<uint64_t> bytes_since_prune_ = 0;
};

}  // namespace

std::unique_ptr<Engine> MakeRocksEngine(std::string path, const RocksOptions& options,
                                        std::shared_ptr<OpenedRocks> opened) {
  return std::make_unique<Database>(std::move(path), options, std::move(opened));
}

absl::StatusOr<std::unique_ptr<Engine>> RocksEngine::Open(const std::string& path,
                                                          const RocksOptions& options) {
  if (absl::Status status = CheckFiles(path); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<OpenedRocks>> opened = OpenRocks(path, options);
  if (!opened.ok()) return opened.status();
  return MakeRocksEngine(path, options, *std::move(opened));
}

}  // namespace gyre
