// gRPC's credentials over a certificate that may be replaced at any time.
#include "server/rpc/credentials.h"

#include <atomic>
#include <cassert>
#include <grpc/grpc_security.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <spdlog/spdlog.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/rpc/status.h"
#include "server/security/principal.h"

namespace gyre {
namespace {

using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::StaticDataCertificateProvider;
using grpc::experimental::TlsCustomVerificationCheckRequest;

absl::StatusOr<Principal> PrincipalOf(const grpc_auth_context* context) {
  std::vector<std::string_view> uris;
  grpc_auth_property_iterator next =
      grpc_auth_context_find_properties_by_name(context, GRPC_PEER_URI_PROPERTY_NAME);
  while (const grpc_auth_property* uri = grpc_auth_property_iterator_next(&next)) {
    uris.emplace_back(uri->value, uri->value_length);
  }
  return gyre::PrincipalOf(uris);
}

std::string_view PathOf(const grpc_metadata* metadata, size_t count) {
  for (const grpc_metadata* entry = metadata; entry != metadata + count; ++entry) {
    if (grpc_slice_str_cmp(entry->key, ":path") != 0) continue;
    return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(entry->value)),
            GRPC_SLICE_LENGTH(entry->value)};
  }
  return {};
}

// What gRPC asks at a server's handshakes and calls. Lives as long as gRPC's part of the credentials, which
// is longer than their C++ face.
class Doorkeeper {
 public:
  Doorkeeper(const CertificateWatch& watch, RpcCounters& counters) : watch_(watch), counters_(counters) {}

  static grpc_ssl_certificate_config_reload_status Fetch(void* self,
                                                         grpc_ssl_server_certificate_config** config) {
    auto& keeper = *static_cast<Doorkeeper*>(self);
    const std::shared_ptr<const CertificateWatch::Current> current = keeper.watch_.current();
    if (keeper.fetched_.exchange(current->number) == current->number) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    const grpc_ssl_pem_key_cert_pair pair = {current->pem.key.c_str(), current->pem.certificate.c_str()};
    *config = grpc_ssl_server_certificate_config_create(current->pem.ca.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  // Before any call, once for each.
  static void Process(void* self, grpc_auth_context* context, const grpc_metadata* metadata, size_t count,
                      grpc_process_auth_metadata_done_cb done, void* user_data) {
    const absl::StatusOr<Principal> principal = PrincipalOf(context);
    const std::string_view path = PathOf(metadata, count);
    const absl::Status status = principal.ok() ? Authorize(*principal, path) : principal.status();
    if (!status.ok()) {
      static_cast<Doorkeeper*>(self)->counters_.calls_denied.fetch_add(1, std::memory_order_relaxed);
    } else if (path.starts_with("/gyre.v1.Admin/")) {
      spdlog::info("{} calls {}", ToString(*principal), path);
    }
    done(user_data, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.code()),
         BoundedMessage({status.message().data(), status.message().size()}).c_str());
  }

  static void Destroy(void* self) { delete static_cast<Doorkeeper*>(self); }

 private:
  const CertificateWatch& watch_;
  RpcCounters& counters_;
  std::atomic<uint64_t> fetched_ = 0;  // number of the certificate that gRPC has
};

// What grpc::SslServerCredentials would make, but with certificates that are fetched at each handshake; that
// part of gRPC has no C++ face in 1.51.
class ServerTls final : public grpc::ServerCredentials {
 public:
  ServerTls(const CertificateWatch& watch, RpcCounters& counters) {
    auto* const keeper = new Doorkeeper(watch, counters);
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, Doorkeeper::Fetch, keeper));
    grpc_server_credentials_set_auth_metadata_processor(
        credentials_, {.process = Doorkeeper::Process, .destroy = Doorkeeper::Destroy, .state = keeper});
  }
  ~ServerTls() override { grpc_server_credentials_release(credentials_); }

  // The only one there is checks roles.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    assert(false);
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* credentials_ = nullptr;
};

// That who answers is a node.
class IsNode final : public ExternalCertificateVerifier {
 public:
  bool Verify(TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    std::vector<std::string_view> uris;
    for (const grpc::string_ref& uri : request->uri_names()) uris.emplace_back(uri.data(), uri.size());
    const absl::StatusOr<Principal> principal = gyre::PrincipalOf(uris);
    if (!principal.ok()) {
      *status = ToGrpc(principal.status());
    } else if (principal->role != Role::kNode) {
      *status = {grpc::StatusCode::UNAUTHENTICATED,
                 "it is of " + ToString(*principal) + ", which is no node"};
    }
    return true;
  }
  void Cancel(TlsCustomVerificationCheckRequest*) override {}
};

std::shared_ptr<grpc::ChannelCredentials> ChannelTls(const CertificatePem& pem) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<StaticDataCertificateProvider>(
      pem.ca, std::vector<grpc::experimental::IdentityKeyCertPair>{{pem.key, pem.certificate}}));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(ExternalCertificateVerifier::Create<IsNode>());
  options.set_check_call_host(false);
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> Credentials::MakeForServer() const {
  if (watch_ == nullptr) return grpc::InsecureServerCredentials();
  return std::make_shared<ServerTls>(*watch_, counters_);
}

std::shared_ptr<grpc::ChannelCredentials> Credentials::ForChannels() {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<const CertificateWatch::Current> current = watch_ ? watch_->current() : nullptr;
  const uint64_t number = current ? current->number : 0;
  if (channels_ == nullptr || number != number_) {
    channels_ = current ? ChannelTls(current->pem) : grpc::InsecureChannelCredentials();
    number_ = number;
  }
  return channels_;
}

}  // namespace gyre
