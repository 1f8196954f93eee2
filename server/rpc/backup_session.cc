// A backup of this node.
#include "server/rpc/backup_session.h"

#include <absl/time/time.h>
#include <algorithm>
#include <optional>
#include <utility>

#include "ring/replica_ranges.h"
#include "server/lane/thread_name.h"
#include "server/rpc/convert_control.h"
#include "server/rpc/status.h"
#include "storage/format/meta_codec.h"
#include "storage/format/row_key.h"
#include "storage/format/sha256.h"

namespace gyre {

BackupSession::BackupSession(Backend& backend, std::atomic<bool>& under_way)
    : backend_(backend), under_way_(under_way) {
  StartRead(&incoming_);
}

// Requests are read to their end, whatever it is; then the thread takes over, and it alone finishes.
void BackupSession::OnReadDone(bool ok) {
  absl::Status status;
  if (ok) {
    status = Take(incoming_);
    if (status.ok()) return StartRead(&incoming_);
  } else if (snapshot_ == nullptr) {
    status = absl::InvalidArgumentError("begin must come first");
  }
  thread_ = std::thread([this, status] { SendAll(status); });
}

absl::Status BackupSession::Take(const v1::BackupRequest& request) {
  if (request.has_begin()) return Begin(request.begin());
  if (request.has_known()) return AddKnown(request.known());
  return absl::InvalidArgumentError("a request says neither begin nor known");
}

absl::Status BackupSession::Begin(const v1::BackupRequest::Begin& begin) {
  if (snapshot_ != nullptr) return absl::InvalidArgumentError("begin must come once");
  if (!IsChunkRows(begin.chunk_rows())) {
    return absl::InvalidArgumentError("chunk_rows is " + std::to_string(begin.chunk_rows()) +
                                      "; it must be a power of two from 16 to 16,384");
  }
  const Layouts before = backend_.state.layouts();
  if (before.view == nullptr) return NotFormed();
  if (under_way_.exchange(true)) {
    return absl::ResourceExhaustedError(
        "another backup of this node is under way; try again when it is over");
  }
  mine_ = true;
  absl::StatusOr<std::unique_ptr<EngineSnapshot>> snapshot = backend_.disk.Snapshot();
  if (!snapshot.ok()) return snapshot.status();
  snapshot_ = *std::move(snapshot);
  chunk_rows_ = begin.chunk_rows();
  view_ = before.view;
  v1::BackupHead& head = *outgoing_.mutable_head();
  head.set_node(ToString(backend_.self));
  head.set_cluster_id(view_->layout.cluster_id);
  head.set_layout_epoch(view_->layout.epoch);
  for (const KeyspaceSpec& keyspace : view_->layout.keyspaces) FromKeyspace(keyspace, *head.add_keyspaces());
  // What the cut proves about a row that is not there holds of all that this node has as a replica: not while
  // it fills, nor while it fetches what a layout gives it.
  const absl::StatusOr<std::string> cuts = snapshot_->Get(Table::kMeta, kMetaStableCut);
  const absl::StatusOr<CutMarks> marks = cuts.ok() ? DecodeCutMarks(*cuts) : cuts.status();
  const bool full = absl::IsNotFound(snapshot_->Get(Table::kMeta, kMetaFilling).status());
  const Layouts after = backend_.state.layouts();
  if (marks.ok() && full && !before.moving() && !after.moving() && after.view == before.view) {
    head.set_stable_cut(marks->cut);
    FillComplete(*view_, head);
  }
  absl::MutexLock lock(&mutex_);
  writing_ = true;
  StartWrite(&outgoing_);
  return absl::OkStatus();
}

void BackupSession::FillComplete(const View& view, v1::BackupHead& head) const {
  const int self = view.ring.IndexOf(backend_.self);
  for (const KeyspaceSpec& keyspace : view.layout.keyspaces) {
    for (const ReplicaRange& range : ReplicaRangesOf(view.ring, static_cast<size_t>(keyspace.n))) {
      if (std::ranges::find(range.members, self) == range.members.end()) continue;
      v1::BackupRange& complete = *head.add_complete();
      complete.set_keyspace(keyspace.id);
      complete.set_begin(range.begin.value);
      complete.set_end(range.end.value);
    }
  }
}

absl::Status BackupSession::AddKnown(const v1::BackupRequest::Known& known) {
  if (snapshot_ == nullptr) return absl::InvalidArgumentError("begin must come before known");
  for (const std::string& sha256 : known.sha256()) {
    if (sha256.size() != kSha256Bytes) return absl::InvalidArgumentError("a SHA-256 has not 32 bytes");
    // Beyond the limit chunks are sent again, which costs time and nothing else.
    if (known_.size() < kKnownMax) known_.insert(sha256);
  }
  return absl::OkStatus();
}

// Unless `status` of the requests says that there is nothing to send.
void BackupSession::SendAll(absl::Status status) {
  NameThisThread("backup");
  if (status.ok()) status = SendRows();
  if (status.ok()) status = SendHints();
  snapshot_.reset();
  if (!WaitToWrite() && status.ok()) status = absl::CancelledError("the caller went away");
  Finish(ToGrpc(status));
}

absl::Status BackupSession::SendRows() {
  for (const KeyspaceSpec& keyspace : view_->layout.keyspaces) {
    KeyRange rest = {RowKeyFloor(keyspace.id, 0), RowKeyCeiling(keyspace.id, UINT64_MAX)};
    for (bool more = true; more;) {
      ChunkWriter writer(chunk_rows_);
      more = false;
      const absl::Status status =
          snapshot_->Scan(Table::kRows, rest, [&](std::string_view row_key, std::string_view record) {
            if (writer.EndsBefore(row_key)) {
              rest.begin = std::string(row_key);
              more = true;
              return false;
            }
            writer.Add(row_key, record);
            return true;
          });
      if (!status.ok()) return status;
      if (writer.empty()) break;
      if (absl::Status sent = SendChunk(writer, ""); !sent.ok()) return sent;
    }
  }
  return absl::OkStatus();
}

// Those that hold data: an empty one stands for the node's own row.
absl::Status BackupSession::SendHints() {
  KeyRange rest;
  for (bool more = true; more;) {
    ChunkWriter writer(chunk_rows_);
    std::optional<uint64_t> target;
    more = false;
    const absl::Status status =
        snapshot_->Scan(Table::kHints, rest, [&](std::string_view key, std::string_view record) {
          uint64_t node = 0;
          std::string_view row_key;
          RowKeyParts parts;
          if (!ParseHintKey(key, node, row_key) || !ParseRowKey(row_key, parts)) return true;
          if (record == *EmptyRecord() || view_->Keyspace(parts.keyspace) == nullptr) return true;
          if ((target && *target != node) || writer.EndsBefore(row_key)) {
            rest.begin = std::string(key);
            more = true;
            return false;
          }
          target = node;
          writer.Add(row_key, record);
          return true;
        });
    if (!status.ok()) return status;
    if (writer.empty()) break;
    if (absl::Status sent = SendChunk(writer, ToString(NodeId{*target})); !sent.ok()) return sent;
  }
  return absl::OkStatus();
}

absl::Status BackupSession::SendChunk(ChunkWriter& writer, const std::string& hints_for) {
  const uint64_t rows = writer.rows();
  std::string content = writer.Finish();
  std::string sha256 = Sha256(content);
  if (!Pace(content.size()) || !WaitToWrite()) return absl::CancelledError("the caller went away");
  v1::BackupChunk& chunk = *outgoing_.mutable_chunk();
  chunk.Clear();
  chunk.set_rows(rows);
  chunk.set_bytes(content.size());
  chunk.set_hints_for(hints_for);
  chunk.set_known(known_.contains(sha256));
  chunk.set_sha256(std::move(sha256));
  if (!chunk.known()) chunk.set_content(std::move(content));
  absl::MutexLock lock(&mutex_);
  if (ended_) return absl::CancelledError("the caller went away");
  writing_ = true;
  StartWrite(&outgoing_);
  return absl::OkStatus();
}

// Until nothing is being written. False when the caller is gone.
bool BackupSession::WaitToWrite() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](BackupSession* self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mutex_) { return !self->writing_; },
      this));
  return !ended_;
}

// Waits until so many bytes more are within the rate. False when the caller is gone.
bool BackupSession::Pace(size_t bytes) {
  const Micros now = backend_.clock.Read().steady;
  const Micros at = std::max(next_at_, now);
  next_at_ = at + Micros{static_cast<int64_t>(bytes * 1'000'000 / kBytesPerSecondMax)};
  absl::MutexLock lock(&mutex_);
  return !mutex_.AwaitWithTimeout(
      absl::Condition(
          +[](BackupSession* self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mutex_) { return self->ended_; },
          this),
      absl::Microseconds((at - now).value));
}

void BackupSession::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok) ended_ = true;
}

void BackupSession::OnCancel() {
  absl::MutexLock lock(&mutex_);
  ended_ = true;
}

void BackupSession::OnDone() {
  if (thread_.joinable()) thread_.join();
  if (mine_) under_way_ = false;
  delete this;
}

}  // namespace gyre
