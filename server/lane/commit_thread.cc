// The commit thread: batches, and what must happen in one order with them.
#include "server/lane/commit_thread.h"

#include <absl/synchronization/notification.h>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "server/lane/answers.h"
#include "server/lane/thread_name.h"
#include "storage/format/meta_codec.h"

namespace gyre {
namespace {

constexpr size_t kRecountRowsPerStep = 2000;
constexpr absl::Duration kSaveEvery = absl::Minutes(5);
constexpr uint64_t kSaveAfterBytes = 128 << 20;  // of log that a start would replay
constexpr absl::Duration kWatchEvery = absl::Seconds(1);

}  // namespace

CommitThread::CommitThread(Store& store, Options options, std::function<void(Input)> to_lane)
    : store_(store),
      options_(std::move(options)),
      to_lane_(std::move(to_lane)),
      save_at_(absl::Now() + kSaveEvery),
      watch_at_(absl::Now()),
      thread_([this] { Loop(); }) {}

std::vector<absl::StatusOr<RecordBytes>> CommitThread::ReadRows(std::span<const std::string> row_keys) {
  if (row_keys.empty()) return {};
  return store_.ReadRows(row_keys);
}

peer::FetchPageReply CommitThread::ReadPage(const peer::FetchPage& page) {
  return PageOf(store_.engine(), page);
}

void CommitThread::ReadSums(SumRequest request) {
  jobs_.Push([this, request = std::move(request)] { to_lane_(SumsOf(store_, request)); });
}

void CommitThread::Commit(Batch batch) {
  jobs_.Push([this, batch = std::make_shared<Batch>(std::move(batch))] { CommitNow(std::move(*batch)); });
}

void CommitThread::CommitNow(Batch batch) {
  std::vector<RowWrite> rows;
  rows.reserve(batch.rows.size());
  for (const RowCommit& row : batch.rows) rows.push_back({row.row_key, row.before, row.after});
  absl::Status status = store_.Commit(rows, FactsOf(batch), options_.durability);
  batches_.fetch_add(1, std::memory_order_relaxed);
  rows_.fetch_add(rows.size(), std::memory_order_relaxed);
  if (!status.ok()) {
    failures_.fetch_add(1, std::memory_order_relaxed);
    recounting_ = true;
    SetHealth(status);
  }
  to_lane_(
      Committed{std::move(status), std::move(batch.rows), batch.actor, batch.cuts, batch.moves.has_value()});
}

bool CommitThread::Start(std::function<void(Store&)> job) {
  if (stopped_) return false;
  jobs_.Push([this, job = std::move(job)] {
    job(store_);
    recounting_ = true;  // it may have left something to count
  });
  return true;
}

absl::Status CommitThread::Run(std::function<void(Store&)> job) {
  const auto done = std::make_shared<absl::Notification>();
  const auto run = [&job, done](Store& store) {
    job(store);
    done->Notify();
  };
  if (!Start(run)) return absl::CancelledError("this node is shutting down");
  done->WaitForNotification();
  return absl::OkStatus();
}

void CommitThread::Stop() {
  if (stopped_.exchange(true)) return;
  jobs_.Close();
  thread_.join();
}

void CommitThread::Loop() {
  NameThisThread("commit");
  std::vector<Job> jobs;
  bool open = true;
  while (open) {
    const absl::Time wake = recounting_ ? absl::Now() : std::min(save_at_, watch_at_);
    open = jobs_.Drain(wake, jobs);
    for (Job& job : jobs) job();
    jobs.clear();
    if (open) Background();
  }
}

void CommitThread::Background() {
  const absl::Time now = absl::Now();
  if (now >= watch_at_) WatchDisk();
  if (recounting_) recounting_ = store_.RecountSome(kRecountRowsPerStep);
  if (now >= save_at_ || store_.bytes_since_save() > kSaveAfterBytes) {
    // A failure is no harm: the next start recounts.
    if (store_.SaveSums().ok()) recounting_ = true;
    save_at_ = now + kSaveEvery;
  }
}

// Refuses writes before the disk is really full, and takes them again when there is space.
void CommitThread::WatchDisk() {
  watch_at_ = absl::Now() + kWatchEvery;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(options_.path, error);
  if (!error && space.available < options_.disk_reserve_bytes) {
    return SetHealth(absl::ResourceExhaustedError(
        "the disk of " + options_.path + " has only " + std::to_string(space.available >> 20) +
        " MiB free, less than the reserve (limits.disk_reserve_bytes); make space, writes then go on by "
        "themselves"));
  }
  if (healthy_) return;
  if (absl::Status status = store_.engine().Resume(); !status.ok()) return SetHealth(std::move(status));
  SetHealth(absl::OkStatus());
}

void CommitThread::SetHealth(absl::Status status) {
  if (healthy_ && status.ok()) return;
  healthy_ = status.ok();
  to_lane_(StoreHealth{std::move(status)});
}

}  // namespace gyre
