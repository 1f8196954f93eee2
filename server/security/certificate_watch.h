// A node's own certificate, read again when its files change.
//
// New contents are taken only when all of them are right together: a key that does not belong to the
// certificate (one file of two is written), one that is cut off, expired, of another authority or of another
// node is refused; the one before stays in use, and that is said in the log and counted.
#pragma once

#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "proto/tls/certificate.h"
#include "ring/token.h"

namespace gyre {

// Threads: thread-safe. Looks about once a second, on a thread of its own.
class CertificateWatch {
 public:
  struct Current {
    uint64_t number = 0;  // differs from that of every other certificate that was current
    CertificatePem pem;
    int64_t expires_s = 0;  // Unix time
  };

  // UNAUTHENTICATED, a sentence, when what the files hold now cannot be used by node `self`.
  static absl::StatusOr<std::unique_ptr<CertificateWatch>> Start(CertificateFiles files, NodeId self);
  ~CertificateWatch();

  std::shared_ptr<const Current> current() const;
  // Contents that were refused.
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  CertificateWatch(CertificateFiles files, NodeId self) : files_(std::move(files)), self_(self) {}
  absl::StatusOr<std::shared_ptr<const Current>> Check(CertificatePem pem, uint64_t number) const;
  void Look();
  void Run();

  const CertificateFiles files_;
  const NodeId self_;
  std::atomic<uint64_t> failures_ = 0;
  std::optional<absl::StatusOr<CertificatePem>> refused_;  // last; of the watching thread

  mutable absl::Mutex mutex_;
  std::shared_ptr<const Current> current_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace gyre
