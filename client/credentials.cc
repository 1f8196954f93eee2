// Mutual TLS by files that gRPC watches.
#include "client/credentials.h"

#include <grpcpp/security/tls_credentials_options.h>
#include <string_view>

#include "proto/tls/certificate.h"

namespace gyre {
inline namespace sdk {
namespace {

constexpr unsigned int kLookEverySeconds = 10;

bool Says(const std::string& message, std::string_view words) {
  return message.find(words) != std::string::npos;
}

}  // namespace

absl::StatusOr<Credentials> MakeCredentials(const std::optional<TlsFiles>& tls) {
  if (!tls) return Credentials{};
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
  return Credentials{.channel = grpc::experimental::TlsCredentials(options), .tls = true};
}

absl::Status NotReached(const std::string& address, const Credentials& credentials,
                        const grpc::Status& status) {
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
  // gRPC says in words only what failed. With TLS 1.3 the node judges after this side is done with the
  // handshake, and closes the connection before its first byte.
  if (Says(why, "handshake failed")) {
    return absl::UnauthenticatedError("node " + address +
                                      " is not trusted, or its certificate names another host: " + why);
  }
  const bool closed_at_once = Says(why, "failed to connect") && Says(why, "Socket closed");
  if (closed_at_once && credentials.tls) {
    return absl::UnauthenticatedError("node " + address +
                                      " closed the connection after the handshake: it does not trust this "
                                      "client's certificate (" +
                                      why + ")");
  }
  return absl::UnavailableError(
      "node " + address + " cannot be reached: " + why +
      (closed_at_once ? "; if it serves with TLS, the client needs certificates, too" : ""));
}

}  // namespace sdk
}  // namespace gyre
