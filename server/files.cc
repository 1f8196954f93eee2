// Changes of directories that survive loss of power.
#include "server/files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace gyre {

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(what + ": " + std::strerror(errno));
}

absl::Status SyncDirectory(const std::string& dir) {
  const int fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return SystemError("the directory " + dir + " cannot be opened");
  const bool synced = fsync(fd) == 0;
  const auto status = synced ? absl::OkStatus() : SystemError("the directory " + dir + " cannot be synced");
  close(fd);
  return status;
}

absl::Status RenameIn(const std::string& dir, const std::string& from, const std::string& to) {
  if (std::rename((dir + "/" + from).c_str(), (dir + "/" + to).c_str()) != 0)
    return SystemError(dir + "/" + from + " cannot be renamed to " + to);
  return SyncDirectory(dir);
}

}  // namespace gyre
