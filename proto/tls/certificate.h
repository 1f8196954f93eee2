// A certificate with its key and the authorities to trust: read from PEM files, and checked before it is
// used.
//
// Threads: all functions may be called from any thread.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <string>
#include <vector>

namespace gyre {

// Paths. The certificate may be followed by intermediates; the authorities may be several, so that one can
// follow another.
struct CertificateFiles {
  std::string ca;
  std::string certificate;
  std::string key;
};

// What the files hold, as PEM.
struct CertificatePem {
  std::string ca;
  std::string certificate;
  std::string key;
  bool operator==(const CertificatePem&) const = default;
};

struct CertificateFacts {
  int64_t expires_s = 0;          // Unix time at which the first of the chain expires
  std::vector<std::string> uris;  // of its subject alternative names
};

enum class CertificateUse : uint8_t {
  kClient,           // it opens connections
  kServerAndClient,  // it takes them, too
};

// Errors of both are UNAUTHENTICATED, a sentence that names the file. At most 1 MiB is read of each.
absl::StatusOr<CertificatePem> ReadCertificate(const CertificateFiles& files);

// That the key belongs to the certificate, that one of the authorities vouches for it for this use, and that
// it is valid now. `files` are for the sentences.
absl::StatusOr<CertificateFacts> CheckCertificate(const CertificateFiles& files, const CertificatePem& pem,
                                                  CertificateUse use);

}  // namespace gyre
