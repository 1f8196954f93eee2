// RocksDB, open: its options, its column families and what its statuses mean.
#include "storage/rocks_open.h"

#include <algorithm>
#include <cstdarg>
#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
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
    case Table::kCollect:
      return "collect";
    case Table::kMeta:
      break;
  }
  return rocksdb::kDefaultColumnFamilyName.c_str();
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

}  // namespace

OpenedRocks::~OpenedRocks() {
  for (const rocksdb::Snapshot* snapshot : snapshots) db->ReleaseSnapshot(snapshot);
  for (rocksdb::ColumnFamilyHandle* family : families)
    db->DestroyColumnFamilyHandle(family).PermitUncheckedError();
}

absl::StatusOr<std::shared_ptr<OpenedRocks>> OpenRocks(const std::string& path, const RocksOptions& options,
                                                       bool damaged) {
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
  auto opened = std::make_shared<OpenedRocks>();
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(database, path, descriptors, &opened->families, &db);
  if (!status.ok()) return StatusOf(status, path);
  opened->db.reset(db);
  return opened;
}

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

}  // namespace gyre
