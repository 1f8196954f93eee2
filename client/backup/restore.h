// Writes what a backup holds into a cluster, as new puts.
#pragma once

#include <absl/status/statusor.h>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/backup/take.h"

namespace gyre::backup {

struct RestoreOptions {
  std::vector<std::string> endpoints;
  std::chrono::milliseconds timeout{5000};  // of each call
  std::optional<TlsFiles> tls;
  std::string directory;
  bool overwrite = false;  // keys that the cluster has
  Progress progress;
};

struct RestoreResult {
  uint64_t nodes = 0;    // that the backup is of
  uint64_t keys = 0;     // in the backup
  uint64_t written = 0;  // of them; a restore that was interrupted counts with what went before
  uint64_t kept = 0;     // were in the cluster already, and were left as they are
  uint64_t bytes = 0;    // of all files
  uint64_t files = 0;
  bool resumed = false;  // it went on where an earlier one was interrupted
};

// All files are verified first: nothing is written from a backup that is damaged anywhere. Keyspaces that the
// cluster lacks are made. Then each key is read from a quorum, and written if it is not there (or is
// another, with `overwrite`): all its siblings, with their bytes and times of expiry. Keys that the cluster
// has and the backup does not are left alone. How far it is stands in a file of the directory, named by the
// cluster: the next attempt with the same backup goes on there.
//
// Errors, beside those of the directory: FAILED_PRECONDITION: a keyspace treats conflicts otherwise than that
// of the backup; UNAVAILABLE: a key could not be read or written.
absl::StatusOr<RestoreResult> Restore(const RestoreOptions& options);

}  // namespace gyre::backup
