// Takes a backup.
#include "client/backup/take.h"

#include <absl/container/flat_hash_set.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "client/admin_backup.h"
#include "client/backup/directory.h"
#include "client/backup/manifest.h"
#include "client/backup/merged_rows.h"
#include "storage/format/backup_chunk.h"
#include "storage/format/sha256.h"

namespace gyre::backup {
namespace {

constexpr uint64_t kChunksOfANode = 8192;  // about so many, until chunks have their largest size
constexpr uint64_t kProgressEvery = 64;    // chunks

absl::Status About(const std::string& node, const absl::Status& status) {
  return absl::Status(status.code(), "node " + node + ": " + std::string(status.message()));
}

// Ranges of chunks of a size, whatever the number of rows; that of the backup before, so that its chunks can
// be used again, unless there are many more or fewer rows now.
uint32_t ChunkRows(const ClusterInfo& cluster, uint32_t before) {
  uint64_t rows = 0;
  for (const NodeStatus& node : cluster.nodes) rows = std::max(rows, node.keys);
  const uint64_t wanted = std::bit_ceil(std::max<uint64_t>(rows / kChunksOfANode, 1));
  const auto fits = static_cast<uint32_t>(std::clamp<uint64_t>(wanted, kChunkRowsMin, kChunkRowsMax));
  const bool near = before != 0 && before <= 8 * uint64_t{fits} && fits <= 8 * uint64_t{before};
  return near ? before : fits;
}

class Taking {
 public:
  Taking(const TakeOptions& options, Directory directory)
      : options_(options), directory_(std::move(directory)) {}

  absl::StatusOr<TakeResult> Run();

 private:
  absl::Status ReadBefore();
  absl::Status CheckChunks();
  absl::Status BeginAll(const ClusterInfo& cluster);
  absl::Status Fetch(NodeBackup& stream);
  absl::Status Add(BackupChunk chunk, Manifest::Node& node);
  absl::Status Publish();
  absl::Status CountKeys();
  absl::Status RemoveUnused();
  void Tell(const char* doing, uint64_t done, uint64_t total) const {
    if (options_.progress) options_.progress(doing, done, total);
  }

  const TakeOptions& options_;
  Directory directory_;
  uint64_t cluster_before_ = 0;  // of the backup that the directory has; 0: none
  uint32_t chunk_rows_before_ = 0;
  absl::flat_hash_set<std::string> there_;  // chunks, by name: whole when this began, or written since
  absl::flat_hash_set<std::string> reused_;
  std::vector<std::unique_ptr<NodeBackup>> streams_;
  uint64_t rows_expected_ = 0;
  uint64_t rows_ = 0;
  uint64_t chunks_ = 0;
  absl::flat_hash_set<std::string> written_;
  Manifest manifest_;
  TakeResult result_;
};

absl::Status Taking::ReadBefore() {
  const absl::StatusOr<std::optional<std::string>> text = directory_.ReadFile(kManifestName);
  if (!text.ok()) return text.status();
  if (!*text) return absl::OkStatus();
  const absl::StatusOr<Manifest> manifest = DecodeManifest(**text);
  // A damaged manifest is replaced by this backup's; its chunks can be used for what they are.
  if (absl::IsDataLoss(manifest.status())) {
    ++result_.damaged;
    return absl::OkStatus();
  }
  if (!manifest.ok()) return manifest.status();
  cluster_before_ = manifest->cluster_id;
  chunk_rows_before_ = manifest->chunk_rows;
  return absl::OkStatus();
}

// What is used again must be what its name says: the disk may have lost some of it meanwhile, and what was
// written before a crash need not have got there whole.
absl::Status Taking::CheckChunks() {
  const absl::StatusOr<std::vector<std::string>> names = directory_.ListChunks();
  if (!names.ok()) return names.status();
  uint64_t checked = 0;
  for (const std::string& name : *names) {
    if (++checked % kProgressEvery == 0) Tell("checking what is there", checked, names->size());
    const absl::StatusOr<std::string> content = directory_.ReadChunk(name);
    if (content.ok()) {
      there_.insert(name);
      continue;
    }
    if (!absl::IsDataLoss(content.status())) return content.status();
    ++result_.damaged;
    if (absl::Status status = directory_.RemoveChunk(name); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// The moments of all nodes lie close to one another, for each begins before anything is fetched.
absl::Status Taking::BeginAll(const ClusterInfo& cluster) {
  for (const NodeStatus& node : cluster.nodes) {
    if (!node.member || std::ranges::find(options_.without, node.id) != options_.without.end()) continue;
    const absl::Time give_up = absl::Now() + absl::FromChrono(options_.timeout);
    for (;;) {
      auto stream = AdminClient({node.address}, options_.timeout, options_.tls).Backup(manifest_.chunk_rows);
      if (stream.ok()) {
        streams_.push_back(*std::move(stream));
        break;
      }
      // One that was killed just now may not have ended on the node.
      if (absl::IsResourceExhausted(stream.status()) && absl::Now() < give_up) {
        absl::SleepFor(absl::Milliseconds(50));
        continue;
      }
      const absl::Status status = About(node.id, stream.status());
      if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
      return absl::UnavailableError(std::string(status.message()) +
                                    "; a backup needs all members: start it, or take the backup --without " +
                                    node.id + ", in which what only that node has is missing");
    }
    if (streams_.back()->head().cluster_id != cluster.cluster_id) {
      return About(node.id, absl::FailedPreconditionError("it belongs to another cluster"));
    }
    rows_expected_ += node.keys;
  }
  if (streams_.empty()) return absl::InvalidArgumentError("there is no member left to take a backup of");
  return absl::OkStatus();
}

absl::Status Taking::Add(BackupChunk chunk, Manifest::Node& node) {
  std::string name = ToHexDigits(chunk.sha256);
  if (!IsChunkName(name)) return absl::InternalError("it sent a chunk without a SHA-256");
  const bool there = there_.contains(name);
  if (chunk.known && !there) return absl::InternalError("it left out a chunk that it was not told of");
  if (!chunk.known) {
    if (Sha256(chunk.content) != chunk.sha256 || chunk.content.size() != chunk.bytes) {
      return absl::DataLossError("a chunk changed on its way; take the backup again");
    }
    if (!there) {
      if (absl::Status status = directory_.WriteChunk(name, chunk.content); !status.ok()) return status;
      there_.insert(name);
      written_.insert(name);
    }
  }
  if (!written_.contains(name)) reused_.insert(name);
  if (node.runs.empty() || node.runs.back().hints_for != chunk.hints_for) {
    node.runs.push_back({.hints_for = chunk.hints_for, .chunks = {}});
  }
  rows_ += chunk.rows;
  node.runs.back().chunks.push_back({.name = std::move(name), .rows = chunk.rows, .bytes = chunk.bytes});
  if (++chunks_ % kProgressEvery == 0) Tell("fetching rows", rows_, std::max(rows_, rows_expected_));
  return absl::OkStatus();
}

absl::Status Taking::Fetch(NodeBackup& stream) {
  const BackupHead& head = stream.head();
  for (const KeyspaceInfo& keyspace : head.keyspaces) {
    const auto same = [&](const KeyspaceInfo& other) { return other.id == keyspace.id; };
    if (std::ranges::none_of(manifest_.keyspaces, same)) manifest_.keyspaces.push_back(keyspace);
  }
  Manifest::Node node = {
      .id = head.node, .stable_cut = head.stable_cut, .complete = head.complete, .runs = {}};
  std::vector<std::string> known;
  known.reserve(there_.size());
  for (const std::string& name : there_) {
    std::string sha256;
    if (FromHexDigits(name, sha256)) known.push_back(std::move(sha256));
  }
  if (absl::Status status = stream.SkipKnown(known); !status.ok()) return About(head.node, status);
  for (;;) {
    BackupChunk chunk;
    const absl::StatusOr<bool> more = stream.Next(chunk);
    if (!more.ok()) return About(head.node, more.status());
    if (!*more) break;
    if (absl::Status status = Add(std::move(chunk), node); !status.ok()) return About(head.node, status);
  }
  manifest_.nodes.push_back(std::move(node));
  return absl::OkStatus();
}

// From here on this is the backup that the directory has.
absl::Status Taking::Publish() {
  std::ranges::sort(manifest_.keyspaces, {}, &KeyspaceInfo::id);
  if (absl::Status status = directory_.Sync(); !status.ok()) return status;
  return directory_.WriteFile(kManifestName, EncodeManifest(manifest_));
}

absl::Status Taking::CountKeys() {
  MergedRows rows(directory_, manifest_);
  const auto now_ms = static_cast<uint64_t>(absl::ToUnixMillis(absl::Now()));
  MergedRow row;
  for (uint64_t read = 0;; ++read) {
    const absl::StatusOr<bool> more = rows.Next(row);
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
    if (!VisibleVersions(row.record, now_ms).empty()) ++result_.keys;
    if (read % 4096 == 0) Tell("reading it back", rows.rows_read(), rows_);
  }
}

absl::Status Taking::RemoveUnused() {
  for (const Manifest::Node& node : manifest_.nodes) {
    for (const Manifest::Run& run : node.runs) {
      for (const Manifest::Chunk& chunk : run.chunks) there_.erase(chunk.name);
    }
  }
  for (const std::string& name : there_) {
    if (absl::Status status = directory_.RemoveChunk(name); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<TakeResult> Taking::Run() {
  absl::StatusOr<ClusterInfo> cluster =
      AdminClient(options_.endpoints, options_.timeout, options_.tls).ClusterStatus();
  if (!cluster.ok()) return cluster.status();
  if (cluster->cluster_id == 0) return absl::UnavailableError("the cluster has not formed yet");
  for (const std::string& id : options_.without) {
    const auto is = [&](const NodeStatus& node) { return node.member && node.id == id; };
    if (std::ranges::none_of(cluster->nodes, is)) {
      return absl::InvalidArgumentError("--without " + id + ": there is no such member");
    }
  }
  absl::Status status = ReadBefore();
  if (status.ok() && cluster_before_ != 0 && cluster_before_ != cluster->cluster_id) {
    status = absl::FailedPreconditionError(directory_.path() +
                                           " has a backup of another cluster; name another directory");
  }
  if (status.ok()) status = CheckChunks();
  if (!status.ok()) return status;
  manifest_.cluster_id = cluster->cluster_id;
  manifest_.chunk_rows = ChunkRows(*cluster, chunk_rows_before_);
  manifest_.made_at_ms = static_cast<uint64_t>(absl::ToUnixMillis(absl::Now()));
  if (status = BeginAll(*cluster); !status.ok()) return status;
  for (std::unique_ptr<NodeBackup>& stream : streams_) {
    if (status = Fetch(*stream); !status.ok()) return status;
    stream.reset();  // the node need not keep that moment any more
  }
  if (status = CountKeys(); !status.ok()) return status;
  if (status = Publish(); !status.ok()) return status;
  if (status = RemoveUnused(); !status.ok()) return status;
  const Totals totals = TotalsOf(manifest_);
  result_.nodes = manifest_.nodes.size();
  result_.files = totals.files;
  result_.bytes = totals.bytes;
  result_.reused = reused_.size();
  return result_;
}

}  // namespace

absl::StatusOr<TakeResult> Take(const TakeOptions& options) {
  absl::StatusOr<Directory> directory = Directory::Open(options.directory, /*create=*/true);
  if (!directory.ok()) return directory.status();
  return Taking(options, *std::move(directory)).Run();
}

}  // namespace gyre::backup
