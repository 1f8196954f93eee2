// Writes keys of a backup: each is read first, which decides.
#include "client/backup/restore_writer.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

namespace gyre::backup {
namespace {

bool Same(const Value& value, const RestoreWriter::Version& version) {
  return value.bytes == version.bytes && value.expires_at_ms == version.expires_at_ms;
}

// The places of the versions that `found` lacks, or nullopt when it holds something else as well. Equal
// versions are counted.
std::optional<std::vector<size_t>> Lacking(const std::vector<Value>& found,
                                           const std::vector<RestoreWriter::Version>& versions) {
  std::vector<bool> there(versions.size(), false);
  for (const Value& value : found) {
    size_t i = 0;
    while (i < versions.size() && (there[i] || !Same(value, versions[i]))) ++i;
    if (i == versions.size()) return std::nullopt;
    there[i] = true;
  }
  std::vector<size_t> lacking;
  for (size_t i = 0; i < versions.size(); ++i) {
    if (!there[i]) lacking.push_back(i);
  }
  return lacking;
}

}  // namespace

// One key under way.
struct RestoreWriter::Job {
  Key key;
  std::atomic<size_t> puts_left = 0;
  absl::Mutex mutex;
  absl::Status failure ABSL_GUARDED_BY(mutex);
};

bool RestoreWriter::Write(Key key) {
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](RestoreWriter* self)
             ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mutex_) { return self->in_flight_ < kInFlightMax; },
        this));
    if (!failure_.ok()) return false;
    ++in_flight_;
  }
  auto job = std::make_shared<Job>();
  job->key = std::move(key);
  const GetOptions options{.keyspace = job->key.keyspace, .r = Replicas::Quorum()};
  client_.AsyncGet(job->key.key, options, [this, job](absl::StatusOr<GetResult> found) {
    // A read has no effect, whatever became of it.
    if (!found.ok()) return Done(*job, absl::UnavailableError(found.status().message()), false);
    Read(job, *found);
  });
  return true;
}

// With the context of this read a version supersedes what was read and nothing else. The others of an
// interrupted attempt must stay, so that those which are lacking are put as a retry without a context, which
// supersedes nothing.
void RestoreWriter::Read(const std::shared_ptr<Job>& job, const GetResult& found) {
  const std::vector<Version>& versions = job->key.versions;
  const std::optional<std::vector<size_t>> lacking = Lacking(found.values, versions);
  const bool same = lacking && lacking->empty();
  const bool complete = job->key.begun && lacking && found.found();
  if (same) return Done(*job, absl::OkStatus(), job->key.begun);
  if (found.found() && !complete && !overwrite_) return Done(*job, absl::OkStatus(), false);
  std::vector<size_t> all(versions.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::vector<size_t>& puts = complete ? *lacking : all;
  job->puts_left = puts.size();
  for (const size_t version : puts) {
    Put(job, version, complete ? std::nullopt : std::optional(found.context), job->key.begun);
  }
}

void RestoreWriter::Put(const std::shared_ptr<Job>& job, size_t version,
                        const std::optional<std::string>& context, bool may_have_been_sent) {
  const Version& what = job->key.versions[version];
  const PutOptions options{.keyspace = job->key.keyspace,
                           .context = context,
                           .expires_at_ms = what.expires_at_ms,
                           .write_id = what.write_id,
                           .may_have_been_sent = may_have_been_sent};
  client_.AsyncPut(job->key.key, what.bytes, options, [this, job](const absl::StatusOr<PutResult>& put) {
    absl::Status failure;
    {
      absl::MutexLock lock(&job->mutex);
      if (!put.ok()) job->failure.Update(put.status());
      failure = job->failure;
    }
    if (--job->puts_left == 0) Done(*job, failure, true);
  });
}

void RestoreWriter::Done(const Job& job, const absl::Status& status, bool written) {
  absl::MutexLock lock(&mutex_);
  --in_flight_;
  if (!status.ok()) {
    if (!failure_.ok()) return;
    failure_ = absl::Status(status.code(), "key \"" + job.key.key.substr(0, 100) + "\" of keyspace " +
                                               job.key.keyspace + ": " + std::string(status.message()));
    return;
  }
  ++(written ? counts_.written : counts_.kept);
}

absl::Status RestoreWriter::Drain() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](RestoreWriter* self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mutex_) { return self->in_flight_ == 0; },
      this));
  return failure_;
}

RestoreWriter::Counts RestoreWriter::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace gyre::backup
