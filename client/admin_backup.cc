// The backup of one node: a stream that it fills.
#include "client/admin_backup.h"

#include <algorithm>
#include <utility>

#include "client/admin_stubs.h"

namespace gyre {
inline namespace sdk {
namespace {

constexpr size_t kKnownPerMessage = 16'384;

class Stream final : public NodeBackup {
 public:
  explicit Stream(std::unique_ptr<v1::Admin::Stub> stub)
      : stub_(std::move(stub)), stream_(stub_->Backup(&context_)) {}
  ~Stream() override {
    if (ended_) return;
    context_.TryCancel();
    stream_->Finish();
  }

  absl::Status Begin(uint32_t chunk_rows) {
    v1::BackupRequest request;
    request.mutable_begin()->set_chunk_rows(chunk_rows);
    v1::BackupReply reply;
    if (!stream_->Write(request) || !stream_->Read(&reply)) return End();
    if (!reply.has_head()) return absl::InternalError("the node began its backup without a head");
    const v1::BackupHead& head = reply.head();
    head_ = {.node = head.node(),
             .cluster_id = head.cluster_id(),
             .layout_epoch = head.layout_epoch(),
             .stable_cut = head.stable_cut(),
             .keyspaces = {},
             .complete = {}};
    for (const v1::Keyspace& keyspace : head.keyspaces()) head_.keyspaces.push_back(KeyspaceOf(keyspace));
    for (const v1::BackupRange& range : head.complete()) {
      head_.complete.push_back({.keyspace = range.keyspace(), .begin = range.begin(), .end = range.end()});
    }
    return absl::OkStatus();
  }

  const BackupHead& head() const override { return head_; }

  absl::Status SkipKnown(std::span<const std::string> sha256) override {
    while (!sha256.empty()) {
      const auto some = sha256.first(std::min(sha256.size(), kKnownPerMessage));
      v1::BackupRequest request;
      for (const std::string& hash : some) request.mutable_known()->add_sha256(hash);
      if (!stream_->Write(request)) return End();
      sha256 = sha256.subspan(some.size());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Next(BackupChunk& chunk) override {
    if (!std::exchange(asked_, true)) stream_->WritesDone();
    v1::BackupReply reply;
    if (!stream_->Read(&reply)) {
      if (absl::Status status = End(); !status.ok()) return status;
      return false;
    }
    if (!reply.has_chunk()) return absl::InternalError("the node sent something else than a chunk");
    v1::BackupChunk& wire = *reply.mutable_chunk();
    chunk = {.sha256 = std::move(*wire.mutable_sha256()),
             .rows = wire.rows(),
             .bytes = wire.bytes(),
             .hints_for = std::move(*wire.mutable_hints_for()),
             .known = wire.known(),
             .content = std::move(*wire.mutable_content())};
    return true;
  }

 private:
  absl::Status End() {
    if (ended_) return absl::FailedPreconditionError("the backup has ended");
    ended_ = true;
    return StatusOf(stream_->Finish());
  }

  const std::unique_ptr<v1::Admin::Stub> stub_;
  grpc::ClientContext context_;  // without a deadline: a node that falls silent is noticed by its connection
  const std::unique_ptr<grpc::ClientReaderWriter<v1::BackupRequest, v1::BackupReply>> stream_;
  BackupHead head_;
  bool asked_ = false;
  bool ended_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NodeBackup>> AdminClient::Backup(uint32_t chunk_rows) {
  const auto stubs = Reach();
  if (!stubs.ok()) return stubs.status();
  auto stream = std::make_unique<Stream>(std::move((*stubs)->admin));
  if (absl::Status status = stream->Begin(chunk_rows); !status.ok()) return status;
  return stream;
}

}  // namespace sdk
}  // namespace gyre
