// The directory of a backup: a manifest, and chunks that are named by the SHA-256 of their content.
//
// Nothing is ever reached through a symbolic link below it, and a name that is not one of ours is refused: so
// neither reading nor writing leaves it, whatever somebody put in it. A file is written under another name
// and then renamed, and never changed afterwards: so a copy of the directory by hard links (cp -al) is a
// backup of its own.
//
// Threads: one thread at a time. While an object lives no other program takes a backup or restores here.
// Errors:  sentences that name the file. DATA_LOSS: damaged. FAILED_PRECONDITION: not what it must be.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gyre::backup {

// Sixty-four lower-case hexadecimal digits.
bool IsChunkName(std::string_view name);

class Directory {
 public:
  // `create`: it is made if it is missing; its parent must exist. FAILED_PRECONDITION when it holds other
  // things than a backup.
  static absl::StatusOr<Directory> Open(const std::string& path, bool create);
  Directory(Directory&& other) noexcept;
  Directory& operator=(Directory&&) = delete;
  ~Directory();

  const std::string& path() const { return path_; }

  // A small file beside the chunks; nullopt when there is none.
  absl::StatusOr<std::optional<std::string>> ReadFile(const std::string& name) const;
  // Durable when it returns, and whole or as before at any moment.
  absl::Status WriteFile(const std::string& name, std::string_view content);
  absl::Status RemoveFile(const std::string& name);

  // DATA_LOSS when the content is not what the name says.
  absl::StatusOr<std::string> ReadChunk(const std::string& name) const;
  // Durable only after Sync.
  absl::Status WriteChunk(const std::string& name, std::string_view content);
  absl::Status RemoveChunk(const std::string& name);
  // The names of all chunks, sorted. Removes what an interrupted WriteChunk left.
  absl::StatusOr<std::vector<std::string>> ListChunks();
  // Makes all chunks durable.
  absl::Status Sync();

 private:
  Directory(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status CheckContent() const;
  // Of the folder that a chunk lies in; the caller closes it.
  absl::StatusOr<int> OpenFolder(const std::string& name, bool create) const;

  std::string path_;
  int fd_;
};

}  // namespace gyre::backup
