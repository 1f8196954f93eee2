// A backup of this node: the rows of one moment, sent in chunks to who asks.
#pragma once

#include <absl/container/flat_hash_set.h>
#include <absl/synchronization/mutex.h>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "proto/admin.grpc.pb.h"
#include "server/rpc/backend.h"
#include "storage/format/backup_chunk.h"

namespace gyre {

// Reads on a thread of its own, as fast as the caller takes it and not above a rate. Deletes itself.
class BackupSession : public grpc::ServerBidiReactor<v1::BackupRequest, v1::BackupReply> {
 public:
  // `under_way` is true from the first request of a session to its end; it outlives the session.
  BackupSession(Backend& backend, std::atomic<bool>& under_way);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  static constexpr size_t kKnownMax = size_t{1} << 22;
  static constexpr uint64_t kBytesPerSecondMax = 64 << 20;  // read from the disk: clients come first

  absl::Status Take(const v1::BackupRequest& request);
  absl::Status Begin(const v1::BackupRequest::Begin& begin);
  absl::Status AddKnown(const v1::BackupRequest::Known& known);
  void FillComplete(const View& view, v1::BackupHead& head) const;

  void SendAll(absl::Status status);
  absl::Status SendRows();
  absl::Status SendHints();
  absl::Status SendChunk(ChunkWriter& writer, const std::string& hints_for);
  bool WaitToWrite();
  bool Pace(size_t bytes);

  Backend& backend_;
  std::atomic<bool>& under_way_;
  bool mine_ = false;  // under_way_ was set by this session
  v1::BackupRequest incoming_;
  v1::BackupReply outgoing_;
  std::unique_ptr<EngineSnapshot> snapshot_;
  std::shared_ptr<const View> view_;
  uint32_t chunk_rows_ = 0;
  absl::flat_hash_set<std::string> known_;  // SHA-256
  std::thread thread_;
  Micros next_at_ = {};

  absl::Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // the caller is gone
};

}  // namespace gyre
