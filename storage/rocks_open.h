// RocksDB, open, as the engine and what is left of a damaged store share it: for storage/rocks_*.cc only.
#pragma once

#include <absl/status/statusor.h>
#include <memory>
#include <rocksdb/db.h>
#include <rocksdb/snapshot.h>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "storage/rocks_engine.h"

namespace gyre {

// The database and its column families, by table.
struct OpenedRocks {
  OpenedRocks() = default;
  OpenedRocks(const OpenedRocks&) = delete;
  OpenedRocks& operator=(const OpenedRocks&) = delete;
  ~OpenedRocks();

  rocksdb::ColumnFamilyHandle* Family(Table table) const { return families[static_cast<size_t>(table)]; }

  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  std::set<const rocksdb::Snapshot*> snapshots;  // that are not released yet
};

// `damaged`: whatever can be read of it; nothing is merged then, so that its tables stay as they are.
absl::StatusOr<std::shared_ptr<OpenedRocks>> OpenRocks(const std::string& path, const RocksOptions& options,
                                                       bool damaged = false);

// The engine on it.
std::unique_ptr<Engine> MakeRocksEngine(std::string path, const RocksOptions& options,
                                        std::shared_ptr<OpenedRocks> opened);

// One of Engine's errors, as a sentence that names the directory.
absl::Status StatusOf(const rocksdb::Status& status, const std::string& path);

inline rocksdb::Slice SliceOf(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
inline std::string_view ViewOf(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

}  // namespace gyre
