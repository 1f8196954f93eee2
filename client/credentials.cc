// Mutual TLS by files that gRPC watches.
#include "client/credentials.h"

#include <algorithm>
#include <grpcpp/security/tls_credentials_options.h>
#include <string_view>

#include "proto/tls/certificate.h"

namespace gyre {
inline namespace sdk {
namespace {

constexpr unsigned int kLookEverySeconds = 10;

// gRPC tells a failed handshake in words only. With TLS 1.3 a client learns that it was refused from the
// first bytes that it reads after its own part of the handshake is done: they cannot be unwrapped.
bool IsRefusedHandshake(const std::string& message) {
  constexpr std::string_view kWords[] = {"andshake", "certificate", "SSL", "TSI_", "Unwrap failed"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return message.find(word) != std::string::npos; });
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const std::optional<TlsFiles>& tls) {
  if (!tls) return grpc::InsecureChannelCredentials();
  const CertificateFiles files = {.ca = tls->ca, .certificate = tls->certificate, .key = tls->key};
  const absl::StatusOr<CertificatePem> pem = ReadCertificate(files);
  if (!pem.ok()) return pem.status();
  if (const auto facts = CheckCertificate(files, *pem, CertificateUse::kClient); !facts.ok()) {
    return facts.status();
  }
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.key, files.certificate, files.ca, kLookEverySeconds));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

absl::Status NotReached(const std::string& address, const grpc::Status& status) {
  const std::string& why = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::DeadlineExceededError("node " + address + " did not answer in time");
    case grpc::StatusCode::UNAUTHENTICATED:
      return absl::UnauthenticatedError("node " + address + " refused this client: " + why);
    case grpc::StatusCode::PERMISSION_DENIED:
      return absl::PermissionDeniedError("node " + address + " refused this client: " + why);
    default:
      break;
  }
  if (IsRefusedHandshake(why)) {
    return absl::UnauthenticatedError("node " + address +
                                      " or this client does not trust the other's certificate: " + why);
  }
  return absl::UnavailableError("node " + address + " cannot be reached: " + why);
}

}  // namespace sdk
}  // namespace gyre
