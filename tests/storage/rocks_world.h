// A world on RocksDB, in a directory of its own.
#pragma once

#include <filesystem>

#include "storage/rocks_engine.h"
#include "tests/storage/worlds.h"

namespace gyre {

// A directory that is gone when this is.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = (std::filesystem::temp_directory_path() / "gyre-test-XXXXXX").string();
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    path_ = path;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class RocksWorld final : public World {
 public:
  explicit RocksWorld(RocksOptions options = {}) : options_(options) { Open(); }
  Engine& engine() override { return *engine_; }
  void Reopen() override {
    Close();
    Open();
  }
  void Close() { engine_.reset(); }
  const std::string& path() const { return directory_.path(); }

 private:
  void Open() {
    absl::StatusOr<std::unique_ptr<Engine>> engine = RocksEngine::Open(path(), options_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  const RocksOptions options_;
  TemporaryDirectory directory_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace gyre
