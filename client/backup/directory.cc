// The directory of a backup.
#include "client/backup/directory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "storage/format/backup_chunk.h"
#include "storage/format/sha256.h"

namespace gyre::backup {
namespace {

constexpr char kChunks[] = "chunks";
constexpr std::string_view kPart = ".part";        // of a file that is being written
constexpr size_t kFileBytesMax = size_t{1} << 30;  // a manifest of millions of chunks has a tenth of that
constexpr int kDirectoryMode = 0700;               // it holds the data of users
constexpr int kFileMode = 0600;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

absl::Status Failed(const std::string& what, const std::string& path, int error = errno) {
  const std::string why = std::strerror(error);
  if (error == ELOOP || error == ENOTDIR) {
    return absl::FailedPreconditionError(
        path +
        " is a symbolic link or no directory: a backup has neither, and it is "
        "not followed out of its directory");
  }
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError("cannot " + what + " " + path + ": " + why + "; free some space");
  }
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError("cannot " + what + " " + path + ": " + why);
  }
  if (error == ENOENT) return absl::NotFoundError("cannot " + what + " " + path + ": " + why);
  return absl::InternalError("cannot " + what + " " + path + ": " + why + "; check the disk");
}

absl::StatusOr<std::string> ReadAll(int folder, const std::string& name, const std::string& path,
                                    size_t bytes_max) {
  const Fd file(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return Failed("read", path);
  struct stat about = {};
  if (fstat(file.get(), &about) != 0) return Failed("read", path);
  if (!S_ISREG(about.st_mode)) return absl::FailedPreconditionError(path + " is no regular file");
  if (static_cast<uint64_t>(about.st_size) > bytes_max) {
    return absl::DataLossError(path + " has " + std::to_string(about.st_size) +
                               " bytes, more than any of a backup: it is damaged");
  }
  std::string content(static_cast<size_t>(about.st_size), '\0');
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = read(file.get(), content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("read", path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  content.resize(done);
  return content;
}

absl::Status WriteWhole(int folder, const std::string& name, const std::string& path,
                        std::string_view content, bool sync) {
  const std::string part = name + std::string(kPart);
  const Fd file(
      openat(folder, part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (file.get() < 0) return Failed("write", path);
  while (!content.empty()) {
    const ssize_t put = write(file.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return Failed("write", path);
    content.remove_prefix(static_cast<size_t>(put));
  }
  if (sync && fsync(file.get()) != 0) return Failed("write", path);
  if (renameat(folder, part.c_str(), folder, name.c_str()) != 0) return Failed("write", path);
  if (sync && fsync(folder) != 0) return Failed("write", path);
  return absl::OkStatus();
}

absl::Status ListFolder(int folder, const std::string& path,
                        const std::function<absl::Status(const std::string& name)>& visit) {
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy < 0 ? nullptr : fdopendir(copy), closedir);
  if (listing == nullptr) return Failed("list", path);
  errno = 0;
  while (const dirent* entry = readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (absl::Status status = visit(name); !status.ok()) return status;
    errno = 0;
  }
  return errno == 0 ? absl::OkStatus() : Failed("list", path);
}

std::string FolderOf(std::string_view chunk) { return std::string(chunk.substr(0, 2)); }

absl::Status BadName(const std::string& name) {
  return absl::FailedPreconditionError("\"" + name +
                                       "\" is not the name of a chunk (64 hexadecimal digits), and nothing "
                                       "outside of the backup's directory is read or written");
}

}  // namespace

bool IsChunkName(std::string_view name) {
  return name.size() == 2 * kSha256Bytes && name.find_first_not_of("0123456789abcdef") == name.npos;
}

absl::StatusOr<Directory> Directory::Open(const std::string& path, bool create) {
  if (path.empty()) return absl::InvalidArgumentError("the directory of the backup has an empty name");
  if (create && mkdir(path.c_str(), kDirectoryMode) != 0 && errno != EEXIST) return Failed("make", path);
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && errno == ENOTDIR) return absl::FailedPreconditionError(path + " is no directory");
  if (fd < 0) return Failed("open", path);
  Directory directory(path, fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(path +
                                         " is in use by another backup or restore; wait until that is over");
  }
  if (absl::Status status = directory.CheckContent(); !status.ok()) return status;
  return directory;
}

Directory::Directory(Directory&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

Directory::~Directory() {
  if (fd_ >= 0) close(fd_);
}

// A mistyped DIR must not be filled with chunks, nor cleaned of what looks like some.
absl::Status Directory::CheckContent() const {
  bool ours = false;
  std::string stranger;
  const absl::Status status = ListFolder(fd_, path_, [&](const std::string& name) {
    if (name == kChunks || name.starts_with("manifest.")) ours = true;
    if (name != "lost+found") stranger = name;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (ours || stranger.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(path_ + " holds other things than a backup (" + stranger +
                                       "); name a directory that does not exist or is empty");
}

absl::StatusOr<std::optional<std::string>> Directory::ReadFile(const std::string& name) const {
  absl::StatusOr<std::string> content = ReadAll(fd_, name, path_ + "/" + name, kFileBytesMax);
  if (absl::IsNotFound(content.status())) return std::nullopt;
  if (!content.ok()) return content.status();
  return *std::move(content);
}

absl::Status Directory::WriteFile(const std::string& name, std::string_view content) {
  return WriteWhole(fd_, name, path_ + "/" + name, content, /*sync=*/true);
}

absl::Status Directory::RemoveFile(const std::string& name) {
  if (unlinkat(fd_, name.c_str(), 0) != 0 && errno != ENOENT) return Failed("remove", path_ + "/" + name);
  return absl::OkStatus();
}

absl::StatusOr<int> Directory::OpenFolder(const std::string& name, bool create) const {
  if (!IsChunkName(name)) return BadName(name);
  int folder = fd_;
  std::string path = path_;
  Fd above(-1);
  for (const std::string& step : {std::string(kChunks), FolderOf(name)}) {
    path += "/" + step;
    if (create && mkdirat(folder, step.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
      return Failed("make", path);
    }
    const int next = openat(folder, step.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0) return Failed("open", path);
    if (folder != fd_) close(folder);
    folder = next;
  }
  return folder;
}

absl::StatusOr<std::string> Directory::ReadChunk(const std::string& name) const {
  const absl::StatusOr<int> opened = OpenFolder(name, false);
  if (!opened.ok()) return opened.status();
  const Fd folder(*opened);
  const std::string path = path_ + "/" + kChunks + "/" + FolderOf(name) + "/" + name;
  absl::StatusOr<std::string> content = ReadAll(folder.get(), name, path, kChunkBytesMax);
  if (!content.ok()) return content.status();
  if (Sha256Hex(*content) != name) {
    return absl::DataLossError(path + " is damaged: its content is not what its name, the SHA-256, says");
  }
  return content;
}

absl::Status Directory::WriteChunk(const std::string& name, std::string_view content) {
  const absl::StatusOr<int> opened = OpenFolder(name, true);
  if (!opened.ok()) return opened.status();
  const Fd folder(*opened);
  return WriteWhole(folder.get(), name, path_ + "/" + kChunks + "/" + FolderOf(name) + "/" + name, content,
                    /*sync=*/false);
}

absl::Status Directory::RemoveChunk(const std::string& name) {
  const absl::StatusOr<int> opened = OpenFolder(name, false);
  if (!opened.ok()) return opened.status();
  const Fd folder(*opened);
  if (unlinkat(folder.get(), name.c_str(), 0) != 0 && errno != ENOENT) return Failed("remove", name);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Directory::ListChunks() {
  std::vector<std::string> names;
  const Fd chunks(openat(fd_, kChunks, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (chunks.get() < 0 && errno == ENOENT) return names;
  const std::string path = path_ + "/" + kChunks;
  if (chunks.get() < 0) return Failed("list", path);
  absl::Status status = ListFolder(chunks.get(), path, [&](const std::string& step) -> absl::Status {
    const std::string below = path + "/" + step;
    const Fd folder(openat(chunks.get(), step.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder.get() < 0) return Failed("list", below);
    return ListFolder(folder.get(), below, [&](const std::string& name) -> absl::Status {
      if (IsChunkName(name) && FolderOf(name) == step) {
        names.push_back(name);
      } else if (name.ends_with(kPart) && unlinkat(folder.get(), name.c_str(), 0) != 0) {
        return Failed("remove", below + "/" + name);
      }
      return absl::OkStatus();
    });
  });
  if (!status.ok()) return status;
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status Directory::Sync() {
  if (syncfs(fd_) != 0) return Failed("sync", path_);
  return absl::OkStatus();
}

}  // namespace gyre::backup
