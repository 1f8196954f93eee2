// The engine on RocksDB.
#pragma once

#include <absl/status/statusor.h>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "storage/engine.h"
#include "storage/remains.h"

namespace gyre {

struct RocksOptions {
  size_t cache_bytes = 64 << 20;         // of blocks read from disk, their indexes and filters included
  size_t write_buffer_bytes = 32 << 20;  // of batches that are in the log and not yet in tables
  uint64_t log_bytes_max = 512 << 20;    // of old log, kept for ReplayNotes beside the log in use
  // Called, on a thread of the engine, when it meets damage while nobody waits for an answer: when it merges
  // tables. Must return soon and must not call the engine.
  std::function<void(const absl::Status&)> met_damage = {};
};

class RocksEngine {
 public:
  // Opens the store in the directory `path`, or makes a new one (the directory's parent must exist).
  // UNAVAILABLE when another process has it open or the disk refuses; DATA_LOSS when the log or the list of
  // tables is corrupt: a torn end of the log is what a crash leaves, anything else is damage and never
  // skipped in silence.
  static absl::StatusOr<std::unique_ptr<Engine>> Open(const std::string& path,
                                                      const RocksOptions& options = {});

  // Opens what is left of a store that Open refuses as damaged, or that was found to be. It is laid out in
  // the directory `scratch` (LinkDamaged), which is made anew, and is for the caller to remove; nothing in
  // `path` is changed. What the log holds before and behind a damaged place is there. DATA_LOSS when nothing
  // can be read.
  static absl::StatusOr<std::unique_ptr<Remains>> OpenDamaged(const std::string& path,
                                                              const std::string& scratch,
                                                              const RocksOptions& options = {});

  RocksEngine() = delete;
};

}  // namespace gyre
