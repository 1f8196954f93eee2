// Changes of directories that survive loss of power.
#pragma once

#include <absl/status/status.h>
#include <string>

namespace gyre {

// UNAVAILABLE, as a sentence with the system's reason.
absl::Status SystemError(const std::string& what);

// What was made, renamed or removed in `dir` is durable. UNAVAILABLE when that cannot be done.
absl::Status SyncDirectory(const std::string& dir);

// Renames a file or directory within `dir`, durably. UNAVAILABLE when that cannot be done.
absl::Status RenameIn(const std::string& dir, const std::string& from, const std::string& to);

}  // namespace gyre
