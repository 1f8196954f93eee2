// A directory of a backup, and chunks and manifests by hand.
#pragma once

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "client/backup/directory.h"
#include "client/backup/manifest.h"
#include "storage/format/backup_chunk.h"
#include "storage/format/record_codec.h"
#include "storage/format/row_key.h"
#include "storage/format/sha256.h"

namespace gyre::backup {

// Gone when the test ends.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "gyre-backup-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::filesystem::path ChunkPath(const std::filesystem::path& directory, const std::string& name) {
  return directory / "chunks" / name.substr(0, 2) / name;
}

using Rows = std::vector<std::pair<std::string, std::string>>;  // row key and record, in order

inline Manifest::Chunk WriteChunkOf(Directory& directory, const Rows& rows) {
  ChunkWriter writer(kChunkRowsMax);
  for (const auto& [row_key, record] : rows) writer.Add(row_key, record);
  const std::string content = writer.Finish();
  const Manifest::Chunk chunk = {.name = Sha256Hex(content), .rows = rows.size(), .bytes = content.size()};
  EXPECT_TRUE(directory.WriteChunk(chunk.name, content).ok());
  return chunk;
}

// A manifest of one keyspace, number 1.
inline Manifest ManifestOf(std::vector<Manifest::Node> nodes) {
  return {.cluster_id = 7,
          .made_at_ms = 1'700'000'000'000,
          .chunk_rows = 64,
          .keyspaces = {{.id = 1,
                         .name = "default",
                         .n = 3,
                         .r = Replicas::Quorum(),
                         .w = Replicas::Count(2),
                         .conflict = "siblings",
                         .ttl_ms = 0,
                         .strict = false}},
          .nodes = std::move(nodes)};
}

}  // namespace gyre::backup
