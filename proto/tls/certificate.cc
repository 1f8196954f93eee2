// Reads PEM files and checks them with OpenSSL.
#include "proto/tls/certificate.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <memory>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <optional>

namespace gyre {
namespace {

template <auto Function>
struct FreedBy {
  template <typename T>
  void operator()(T* object) const {
    Function(object);
  }
};
using Bio = std::unique_ptr<BIO, FreedBy<BIO_free>>;
using Key = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, FreedBy<X509_free>>;
using StorePtr = std::unique_ptr<X509_STORE, FreedBy<X509_STORE_free>>;
using ContextPtr = std::unique_ptr<X509_STORE_CTX, FreedBy<X509_STORE_CTX_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, FreedBy<GENERAL_NAMES_free>>;
struct StackFree {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }  // not what it points to
};
using Stack = std::unique_ptr<STACK_OF(X509), StackFree>;

// What OpenSSL left of its errors must not be found by gRPC, which uses it on the same thread.
struct ErrorsCleared {
  ~ErrorsCleared() { ERR_clear_error(); }
};

absl::Status Wrong(const std::string& sentence) { return absl::UnauthenticatedError(sentence); }

absl::StatusOr<std::string> ReadFile(const char* what, const std::string& path) {
  constexpr size_t kBytesMax = 1024 * 1024;
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string content(kBytesMax + 1, '\0');
  if (in) in.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!in.is_open() || in.bad()) {
    return Wrong(std::string(what) + " " + path + " cannot be read: " + std::strerror(errno));
  }
  content.resize(static_cast<size_t>(in.gcount()));
  if (content.size() > kBytesMax) return Wrong(std::string(what) + " " + path + " is longer than 1 MiB");
  return content;
}

Bio Over(const std::string& pem) { return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

// A key with a password is refused rather than asked for.
int NoPassword(char*, int, int, void*) { return 0; }

// All certificates of `pem`, or none when one of them is garbled or cut off.
std::vector<X509Ptr> ReadAll(const std::string& pem) {
  std::vector<X509Ptr> certificates;
  const Bio bio = Over(pem);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)) {
    certificates.emplace_back(next);
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) certificates.clear();
  ERR_clear_error();
  return certificates;
}

int64_t UnixTime(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::vector<std::string> UrisOf(X509* certificate) {
  std::vector<std::string> uris;
  const Names names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  return uris;
}

struct Chain {
  std::vector<X509Ptr> authorities;
  std::vector<X509Ptr> own;  // the certificate, then intermediates
};

// When the first of the chain expires, or why the certificate is not to be trusted for `purpose`.
absl::StatusOr<int64_t> Verify(const CertificateFiles& files, const Chain& chain, int purpose) {
  const StorePtr store(X509_STORE_new());
  for (const X509Ptr& authority : chain.authorities) X509_STORE_add_cert(store.get(), authority.get());
  const Stack intermediates(sk_X509_new_null());
  for (size_t i = 1; i < chain.own.size(); ++i) sk_X509_push(intermediates.get(), chain.own[i].get());
  const ContextPtr context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), chain.own.front().get(), intermediates.get());
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  if (X509_verify_cert(context.get()) != 1) {
    const int error = X509_STORE_CTX_get_error(context.get());
    const bool of_use = error == X509_V_ERR_INVALID_PURPOSE;
    return Wrong("the certificate " + files.certificate + " is not valid by " + files.ca + ": " +
                 X509_verify_cert_error_string(error) +
                 (!of_use                              ? ""
                  : purpose == X509_PURPOSE_SSL_SERVER ? " (as a server's)"
                                                       : " (as a client's)"));
  }
  int64_t expires = std::numeric_limits<int64_t>::max();
  const STACK_OF(X509)* const verified = X509_STORE_CTX_get0_chain(context.get());
  for (int i = 0; i < sk_X509_num(verified); ++i) {
    expires = std::min(expires, UnixTime(X509_get0_notAfter(sk_X509_value(verified, i))));
  }
  return expires;
}

}  // namespace

absl::StatusOr<CertificatePem> ReadCertificate(const CertificateFiles& files) {
  auto ca = ReadFile("the authorities' file", files.ca);
  if (!ca.ok()) return ca.status();
  auto certificate = ReadFile("the certificate", files.certificate);
  if (!certificate.ok()) return certificate.status();
  auto key = ReadFile("the key", files.key);
  if (!key.ok()) return key.status();
  return CertificatePem{*std::move(ca), *std::move(certificate), *std::move(key)};
}

absl::StatusOr<CertificateFacts> CheckCertificate(const CertificateFiles& files, const CertificatePem& pem,
                                                  CertificateUse use) {
  const ErrorsCleared errors_cleared;
  Chain chain{.authorities = ReadAll(pem.ca), .own = ReadAll(pem.certificate)};
  if (chain.authorities.empty()) {
    return Wrong("the authorities' file " + files.ca +
                 " is empty or garbled: it must hold certificates as PEM");
  }
  if (chain.own.empty()) {
    return Wrong("the certificate " + files.certificate + " is empty or garbled: it must be PEM");
  }
  const Key key(PEM_read_bio_PrivateKey(Over(pem.key).get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) {
    return Wrong("the key " + files.key + " is empty, garbled or has a password: it must be plain PEM");
  }
  if (X509_check_private_key(chain.own.front().get(), key.get()) != 1) {
    return Wrong("the key " + files.key + " does not belong to the certificate " + files.certificate);
  }
  absl::StatusOr<int64_t> expires = Verify(files, chain, X509_PURPOSE_SSL_CLIENT);
  if (!expires.ok()) return expires.status();
  if (use == CertificateUse::kServerAndClient) expires = Verify(files, chain, X509_PURPOSE_SSL_SERVER);
  if (!expires.ok()) return expires.status();
  return CertificateFacts{.expires_s = *expires, .uris = UrisOf(chain.own.front().get())};
}

}  // namespace gyre
