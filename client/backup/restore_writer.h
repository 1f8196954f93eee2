// Writes keys of a backup into a cluster, many at a time.
//
// Threads: one thread at a time.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"

namespace gyre::backup {

class RestoreWriter {
 public:
  struct Version {
    std::string bytes;
    uint64_t expires_at_ms = 0;  // 0: never
    std::string write_id;        // 16 bytes, the same whenever this restore writes it
  };
  struct Key {
    std::string keyspace;
    std::string key;
    std::vector<Version> versions;  // at least one
    // An attempt that was interrupted may have written some of its versions already.
    bool begun = false;
  };
  struct Counts {
    uint64_t written = 0;
    uint64_t kept = 0;
  };

  RestoreWriter(Client client, bool overwrite) : client_(std::move(client)), overwrite_(overwrite) {}
  ~RestoreWriter() { Drain().IgnoreError(); }

  // Starts to write one. Waits while many are under way. False once one has failed.
  bool Write(Key key);
  // Waits until all are written. The first failure, which names its key.
  absl::Status Drain();
  // Of all so far. To be called after Drain.
  Counts counts() const;

 private:
  static constexpr int kInFlightMax = 256;
  struct Job;

  void Read(const std::shared_ptr<Job>& job, const GetResult& found);
  void Put(const std::shared_ptr<Job>& job, size_t version, const std::optional<std::string>& context,
           bool may_have_been_sent);
  void Done(const Job& job, const absl::Status& status, bool written);

  Client client_;
  const bool overwrite_;
  mutable absl::Mutex mutex_;
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gyre::backup
