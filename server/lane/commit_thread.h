// The commit thread: makes batches durable while the lane goes on, and does everything else that must happen
// in one order with them: recounts, saved sums, digests.
//
// Threads: ReadRows and ReadPage from any thread; Commit from the lane's thread; Run from any thread but this
// one.
#pragma once

#include <absl/functional/any_invocable.h>
#include <absl/status/status.h>
#include <absl/time/time.h>
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "server/lane/inbox.h"
#include "server/lane/runtime.h"
#include "storage/store.h"

namespace gyre {

class CommitThread : public Disk {
 public:
  struct Options {
    Durability durability = Durability::kDisk;
    std::string path;                 // of the store: its file system's free space is watched
    uint64_t disk_reserve_bytes = 0;  // with less free than this, no more writes
  };
  // `to_lane` is called on this thread, with Committed and StoreHealth inputs.
  CommitThread(Store& store, Options options, std::function<void(Input)> to_lane);
  ~CommitThread() override { Stop(); }

  std::vector<absl::StatusOr<RecordBytes>> ReadRows(std::span<const std::string> row_keys) override;
  peer::FetchPageReply ReadPage(const peer::FetchPage& page) override;
  void ReadSums(SumRequest request) override;
  void Commit(Batch batch) override;

  // Runs `job` between two batches, on this object's thread. After Stop: false, and the job is not run.
  bool Start(std::function<void(Store&)> job);
  // The same, and returns when it is done. CANCELLED after Stop.
  absl::Status Run(std::function<void(Store&)> job);

  // Ends after what was pushed before. Idempotent.
  void Stop();

  // All that is on disk at this moment. Any thread; must not outlive the store.
  absl::StatusOr<std::unique_ptr<EngineSnapshot>> Snapshot() { return store_.engine().Snapshot(); }

  // For metrics; any thread.
  uint64_t batches() const { return batches_.load(std::memory_order_relaxed); }
  uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  uint64_t collectible() const { return store_.collectible(); }
  std::map<uint32_t, RowTotals> totals() const { return store_.totals(); }
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  using Job = std::function<void()>;

  void Loop();
  void Background();
  void CommitNow(Batch batch);
  void WatchDisk();
  void SetHealth(absl::Status status);

  Store& store_;
  const Options options_;
  const std::function<void(Input)> to_lane_;
  Inbox<Job> jobs_;
  std::atomic<bool> stopped_ = false;
  std::atomic<uint64_t> batches_ = 0;
  std::atomic<uint64_t> rows_ = 0;
  std::atomic<uint64_t> failures_ = 0;
  bool healthy_ = true;  // as last told to the lane
  bool recounting_ = true;
  absl::Time save_at_;
  absl::Time watch_at_;
  std::thread thread_;
};

}  // namespace gyre
