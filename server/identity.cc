// Reads, makes and keeps the identity file, and holds the lock of the data directory.
#include "server/identity.h"

#include <cassert>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>

#include "server/files.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

// Makes `dir` and what is missing above it, each one durable.
absl::Status MakeDirectory(const fs::path& dir) {
  std::error_code error;
  if (fs::is_directory(dir, error)) return absl::OkStatus();
  const fs::path parent = dir.parent_path();
  if (!parent.empty() && parent != dir) {
    if (auto status = MakeDirectory(parent); !status.ok()) return status;
  }
  if (mkdir(dir.c_str(), 0700) != 0)
    return SystemError("the data directory " + dir.string() + " cannot be made");
  return SyncDirectory(parent.empty() ? "." : parent.string());
}

// Who holds a lock file, as its holder wrote it.
std::string HolderOf(int lock) {
  char text[32];
  const ssize_t size = pread(lock, text, sizeof text, 0);
  std::string holder(text, size > 0 ? static_cast<size_t>(size) : 0);
  while (holder.ends_with('\n')) holder.pop_back();
  return holder.empty() ? "another process" : "process " + holder;
}

absl::StatusOr<int> Lock(const std::string& dir) {
  const std::string path = dir + "/lock";
  const int lock = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return SystemError("the lock file " + path + " cannot be opened");
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    const auto status = errno == EWOULDBLOCK
                            ? absl::FailedPreconditionError("the data directory " + dir + " is in use by " +
                                                            HolderOf(lock) + "; each node needs its own")
                            : SystemError("the lock file " + path + " cannot be locked");
    close(lock);
    return status;
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(lock, 0) != 0 ||
      pwrite(lock, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    const auto status = SystemError("the lock file " + path + " cannot be written");
    close(lock);
    return status;
  }
  return lock;
}

// Replaces `path` by `content` so that after a crash it is either the old or the new one, and durable on
// return.
absl::Status Replace(const std::string& dir, const std::string& path, const std::string& content) {
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return SystemError("the file " + fresh + " cannot be made");
  const bool written =
      write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()) && fsync(fd) == 0;
  const auto status = written ? absl::OkStatus() : SystemError("the file " + fresh + " cannot be written");
  close(fd);
  if (!status.ok()) return status;
  if (rename(fresh.c_str(), path.c_str()) != 0)
    return SystemError("the file " + path + " cannot be replaced");
  return SyncDirectory(dir);
}

absl::StatusOr<uint64_t> RandomId() {
  uint64_t id = 0;
  while (id == 0) {  // once in 2^64
    if (getrandom(&id, sizeof id, 0) != sizeof id) return SystemError("the system gives no random bytes");
  }
  return id;
}

// An id of sixteen lower-case hexadecimal digits, not zero.
std::optional<uint64_t> ParseId(const toml::node& node) {
  NodeId id;
  if (!node.is_string() || !ParseNodeId(node.as_string()->get(), id) || id.value == 0) return std::nullopt;
  return id.value;
}

}  // namespace

Identity::Identity(Identity&& other) noexcept { *this = std::move(other); }

Identity& Identity::operator=(Identity&& other) noexcept {
  std::swap(data_dir_, other.data_dir_);
  std::swap(lock_, other.lock_);
  std::swap(node_, other.node_);
  std::swap(cluster_, other.cluster_);
  std::swap(stores_, other.stores_);
  return *this;
}

Identity::~Identity() {
  if (lock_ >= 0) close(lock_);  // which unlocks it
}

absl::Status Identity::SetCluster(uint64_t cluster) {
  assert(cluster != 0);
  if (cluster_ == cluster) return absl::OkStatus();
  if (cluster_ != 0) {
    return absl::FailedPreconditionError("this node belongs to cluster " + ToString(NodeId{cluster_}) +
                                         " and not to " + ToString(NodeId{cluster}) +
                                         "; to move it, wipe its data directory with its identity");
  }
  cluster_ = cluster;
  const auto status = Save();
  if (!status.ok()) cluster_ = 0;
  return status;
}

absl::Status Identity::CountStore() {
  ++stores_;
  absl::Status status = Save();
  if (!status.ok()) --stores_;
  return status;
}

absl::Status Identity::Read() {
  const std::string path = data_dir_ + "/identity";
  const auto garbled = [&](const std::string& why) {
    return absl::DataLossError(
        "the identity file " + path + " is garbled: " + why +
        "; put back a copy of it, or give the node a new identity by wiping its directory");
  };
  std::ifstream in(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in) return absl::UnavailableError("the identity file " + path + " cannot be read");
  try {
    const toml::table table = toml::parse(content);
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      const std::optional<uint64_t> id = ParseId(node);
      if (name != "node" && name != "cluster" && name != "stores")
        return garbled("there is no field " + name + " in it");
      if (!id) return garbled(name + " is not sixteen hexadecimal digits in quotes");
      (name == "node" ? node_.value : name == "cluster" ? cluster_ : stores_) = *id;
    }
  } catch (const toml::parse_error& error) {
    return garbled("line " + std::to_string(error.source().begin.line) + ": " +
                   std::string(error.description()));
  }
  return node_ ? absl::OkStatus() : garbled("it does not name its node");
}

absl::Status Identity::Save() const {
  std::string content =
      "# Who this node is. Keep it: a node without it is another node.\nnode = \"" + ToString(node_) + "\"\n";
  if (cluster_ != 0) content += "cluster = \"" + ToString(NodeId{cluster_}) + "\"\n";
  if (stores_ != 0) content += "stores = \"" + ToString(NodeId{stores_}) + "\"\n";
  return Replace(data_dir_, data_dir_ + "/identity", content);
}

absl::StatusOr<Identity> OpenIdentity(const std::string& data_dir) {
  if (auto status = MakeDirectory(data_dir); !status.ok()) return status;
  const auto lock = Lock(data_dir);
  if (!lock.ok()) return lock.status();
  Identity identity(data_dir, *lock);
  std::error_code error;
  if (fs::exists(data_dir + "/identity", error)) {
    if (auto status = identity.Read(); !status.ok()) return status;
    return identity;
  }
  if (error)
    return absl::UnavailableError("the data directory " + data_dir + " cannot be read: " + error.message());
  if (fs::exists(identity.store_dir(), error)) {
    return absl::FailedPreconditionError(
        "the data directory " + data_dir +
        " holds a store but no identity; put back the identity file, or delete the "
        "store if this is to be a new node");
  }
  const auto id = RandomId();
  if (!id.ok()) return id.status();
  identity.node_ = NodeId{*id};
  if (auto status = identity.Save(); !status.ok()) return status;
  return identity;
}

}  // namespace gyre
