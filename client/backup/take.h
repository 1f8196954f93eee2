// Takes a backup of a cluster into a directory.
#pragma once

#include <absl/status/statusor.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/types.h"

namespace gyre::backup {

// How far it is, for people: called now and then. `total` is an estimate, or 0.
using Progress = std::function<void(const char* doing, uint64_t done, uint64_t total)>;

struct TakeOptions {
  std::vector<std::string> endpoints;
  std::chrono::milliseconds timeout{5000};  // of each call but the streams of rows
  std::optional<TlsFiles> tls;
  std::string directory;
  std::vector<std::string> without;  // members, by id, of which none is taken: what only they have is missing
  Progress progress;
};

struct TakeResult {
  uint64_t nodes = 0;
  uint64_t keys = 0;     // that a restore writes
  uint64_t bytes = 0;    // of all files
  uint64_t files = 0;    // chunks
  uint64_t reused = 0;   // of them, that were there before
  uint64_t damaged = 0;  // that were there before and were fetched anew
};

// All members are asked for their rows of this moment, then these are fetched from one after another. What
// the directory has already is not fetched: the chunks of a backup before, and those of one that was
// interrupted. The backup before stays whole until this one is; then what only it needs is removed. At the
// end all is read once more and merged as a restore would.
//
// Errors, beside those of the directory: UNAVAILABLE: a member cannot be asked. FAILED_PRECONDITION: the
// directory has a backup of another cluster. What was fetched stays, and the next attempt goes on.
absl::StatusOr<TakeResult> Take(const TakeOptions& options);

}  // namespace gyre::backup
