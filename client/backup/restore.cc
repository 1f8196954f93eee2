// Writes what a backup holds into a cluster.
#include "client/backup/restore.h"

#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "client/admin.h"
#include "client/backup/directory.h"
#include "client/backup/manifest.h"
#include "client/backup/merged_rows.h"
#include "client/backup/place.h"
#include "client/backup/restore_writer.h"
#include "storage/format/sha256.h"

namespace gyre::backup {
namespace {

// Keys that are written before the place is saved: so many at most may have been written beyond it.
constexpr uint64_t kKeysPerSave = 4096;
constexpr uint64_t kProgressEvery = 1024;  // keys
constexpr size_t kIdBytes = 16;

std::string DrawId() {
  std::random_device random;
  std::string id;
  while (id.size() < kIdBytes) id.push_back(static_cast<char>(random()));
  return id;
}

class Restoring {
 public:
  Restoring(const RestoreOptions& options, Directory directory)
      : options_(options),
        directory_(std::move(directory)),
        admin_(options.endpoints, options.timeout, options.tls) {}

  absl::StatusOr<RestoreResult> Run();

 private:
  absl::Status ReadManifest();
  absl::Status ReadPlace();
  absl::Status MakeKeyspaces(const ClusterInfo& cluster);
  absl::Status AwaitLayout(uint64_t epoch);
  absl::Status WriteRows();
  absl::Status Save(RestoreWriter& writer, const Place& before, const std::string& row_key);
  RestoreWriter::Key KeyOf(const MergedRow& row, const std::vector<const gyre::Version*>& versions) const;
  void Tell(const char* doing, uint64_t done, uint64_t total) const {
    if (options_.progress) options_.progress(doing, done, total);
  }

  const RestoreOptions& options_;
  Directory directory_;
  AdminClient admin_;
  Manifest manifest_;
  std::string manifest_id_;
  Totals totals_;
  std::string place_name_;
  Place place_;
  uint64_t maybe_begun_ = 0;  // keys behind the place that an earlier attempt may have begun
};

absl::Status Restoring::ReadManifest() {
  const absl::StatusOr<std::optional<std::string>> text = directory_.ReadFile(kManifestName);
  if (!text.ok()) return text.status();
  if (!*text) {
    return absl::FailedPreconditionError(directory_.path() + " has no complete backup: there is no " +
                                         kManifestName +
                                         "; let gyre cluster backup end, or name another directory");
  }
  absl::StatusOr<Manifest> manifest = DecodeManifest(**text);
  if (!manifest.ok()) {
    return absl::Status(manifest.status().code(), directory_.path() + "/" + kManifestName + ": " +
                                                      std::string(manifest.status().message()));
  }
  manifest_ = *std::move(manifest);
  manifest_id_ = IdOfManifest(**text);
  totals_ = TotalsOf(manifest_);
  return absl::OkStatus();
}

// A place of another backup, or of a restore by another rule, is of no use.
absl::Status Restoring::ReadPlace() {
  const absl::StatusOr<std::optional<std::string>> text = directory_.ReadFile(place_name_);
  if (!text.ok()) return text.status();
  const std::optional<Place> place = *text ? DecodePlace(**text) : std::nullopt;
  if (place && place->manifest == manifest_id_ && place->overwrite == options_.overwrite &&
      place->restore.size() == kIdBytes) {
    place_ = *place;
    maybe_begun_ = kKeysPerSave;
    return absl::OkStatus();
  }
  place_ = {.manifest = manifest_id_, .overwrite = options_.overwrite, .restore = DrawId()};
  return directory_.WriteFile(place_name_, EncodePlace(place_));
}

// Each node must know them before it can take a key of one.
absl::Status Restoring::AwaitLayout(uint64_t epoch) {
  const absl::Time give_up = absl::Now() + absl::FromChrono(options_.timeout);
  for (;;) {
    const absl::StatusOr<ClusterInfo> cluster = admin_.ClusterStatus();
    if (!cluster.ok()) return cluster.status();
    const bool all = std::ranges::all_of(cluster->nodes, [&](const NodeStatus& node) {
      if (!node.member || node.state != "up") return true;
      const absl::StatusOr<ClusterInfo> seen =
          AdminClient({node.address}, options_.timeout, options_.tls).ClusterStatus();
      return seen.ok() && seen->layout_epoch >= epoch;
    });
    if (all) return absl::OkStatus();
    if (absl::Now() > give_up) {
      return absl::UnavailableError("not all nodes have heard of the new keyspaces yet; try again");
    }
    absl::SleepFor(absl::Milliseconds(50));
  }
}

absl::Status Restoring::MakeKeyspaces(const ClusterInfo& cluster) {
  uint64_t epoch = 0;
  for (const KeyspaceInfo& wanted : manifest_.keyspaces) {
    const auto named = std::ranges::find(cluster.keyspaces, wanted.name, &KeyspaceInfo::name);
    if (named == cluster.keyspaces.end()) {
      KeyspaceInfo keyspace = wanted;
      keyspace.id = 0;
      const absl::StatusOr<KeyspaceResult> made = admin_.CreateKeyspace(keyspace);
      if (!made.ok()) {
        return absl::Status(made.status().code(),
                            "keyspace " + wanted.name + ": " + std::string(made.status().message()));
      }
      epoch = made->layout_epoch;
      continue;
    }
    if (named->conflict != wanted.conflict) {
      return absl::FailedPreconditionError(
          "keyspace " + wanted.name + " treats conflicts by " + named->conflict + ", and in the backup by " +
          wanted.conflict + ": nothing was restored; drop it, or restore into another cluster");
    }
  }
  return epoch == 0 ? absl::OkStatus() : AwaitLayout(epoch);
}

RestoreWriter::Key Restoring::KeyOf(const MergedRow& row,
                                    const std::vector<const gyre::Version*>& versions) const {
  RestoreWriter::Key key = {.keyspace = row.keyspace->name, .key = row.key, .versions = {}};
  for (const gyre::Version* version : versions) {
    const std::string id = Sha256(place_.restore + ToString(version->dot) + row.row_key);
    key.versions.push_back(
        {.bytes = version->value, .expires_at_ms = version->expires_ms, .write_id = id.substr(0, kIdBytes)});
  }
  return key;
}

absl::Status Restoring::Save(RestoreWriter& writer, const Place& before, const std::string& row_key) {
  if (absl::Status status = writer.Drain(); !status.ok()) return status;
  place_.written = before.written + writer.counts().written;
  place_.kept = before.kept + writer.counts().kept;
  place_.row_key = row_key;
  return directory_.WriteFile(place_name_, EncodePlace(place_));
}

absl::Status Restoring::WriteRows() {
  absl::StatusOr<Client> client =
      Client::Connect({.endpoints = options_.endpoints, .timeout = options_.timeout, .tls = options_.tls});
  if (!client.ok()) return client.status();
  const Place before = place_;
  RestoreWriter writer(*std::move(client), options_.overwrite);
  MergedRows rows(directory_, manifest_);
  MergedRow row;
  std::string last = place_.row_key;
  for (uint64_t unsaved = 0;;) {
    const absl::StatusOr<bool> more = rows.Next(row);
    if (!more.ok()) return more.status();
    if (!*more) break;
    if (row.row_key <= before.row_key) continue;
    const auto now_ms = static_cast<uint64_t>(absl::ToUnixMillis(absl::Now()));
    const std::vector<const gyre::Version*> versions = VisibleVersions(row.record, now_ms);
    last = row.row_key;
    if (versions.empty()) continue;
    RestoreWriter::Key key = KeyOf(row, versions);
    if (maybe_begun_ > 0) {
      --maybe_begun_;
      key.begun = true;
    }
    if (!writer.Write(std::move(key))) return writer.Drain();
    ++place_.keys;
    if (place_.keys % kProgressEvery == 0) Tell("writing", rows.rows_read(), totals_.rows);
    if (++unsaved < kKeysPerSave) continue;
    unsaved = 0;
    if (absl::Status status = Save(writer, before, last); !status.ok()) return status;
  }
  return Save(writer, before, last);
}

absl::StatusOr<RestoreResult> Restoring::Run() {
  if (absl::Status status = ReadManifest(); !status.ok()) return status;
  const absl::Status verified = VerifyChunks(
      directory_, manifest_, [this](uint64_t bytes) { Tell("verifying", bytes, totals_.bytes); });
  if (!verified.ok()) return verified;
  const absl::StatusOr<ClusterInfo> cluster = admin_.ClusterStatus();
  if (!cluster.ok()) return cluster.status();
  if (cluster->cluster_id == 0) return absl::UnavailableError("the cluster has not formed yet");
  place_name_ = PlaceName(cluster->cluster_id);
  absl::Status status = MakeKeyspaces(*cluster);
  if (status.ok()) status = ReadPlace();
  const bool resumed = maybe_begun_ > 0;
  if (!status.ok()) return status;
  if (status = WriteRows(); !status.ok()) {
    return absl::Status(status.code(), std::string(status.message()) + "; " + std::to_string(place_.written) +
                                           " keys or more were written, and the same command goes on there");
  }
  if (status = directory_.RemoveFile(place_name_); !status.ok()) return status;
  return RestoreResult{.nodes = manifest_.nodes.size(),
                       .keys = place_.keys,
                       .written = place_.written,
                       .kept = place_.kept,
                       .bytes = totals_.bytes,
                       .files = totals_.files,
                       .resumed = resumed};
}

}  // namespace

absl::StatusOr<RestoreResult> Restore(const RestoreOptions& options) {
  absl::StatusOr<Directory> directory = Directory::Open(options.directory, /*create=*/false);
  if (!directory.ok()) return directory.status();
  return Restoring(options, *std::move(directory)).Run();
}

}  // namespace gyre::backup
