// Looks at a node's certificate once a second, and takes a new one when it is right.
#include "server/security/certificate_watch.h"

#include <absl/time/time.h>
#include <spdlog/spdlog.h>
#include <string>
#include <utility>
#include <vector>

#include "server/security/principal.h"

namespace gyre {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::shared_ptr<const CertificateWatch::Current>> CertificateWatch::Check(
    CertificatePem pem, uint64_t number) const {
  const auto facts = CheckCertificate(files_, pem, CertificateUse::kServerAndClient);
  if (!facts.ok()) return facts.status();
  const std::vector<std::string_view> uris(facts->uris.begin(), facts->uris.end());
  const absl::StatusOr<Principal> names = PrincipalOf(uris);
  if (!names.ok()) {
    return absl::UnauthenticatedError(files_.certificate + ": " + std::string(names.status().message()));
  }
  if (names->role != Role::kNode || names->node != self_) {
    return absl::UnauthenticatedError("the certificate " + files_.certificate + " is of " + ToString(*names) +
                                      ", and this is node " + ToString(self_) +
                                      ": issue one for gyre:node:" + ToString(self_));
  }
  return std::make_shared<const Current>(
      Current{.number = number, .pem = std::move(pem), .expires_s = facts->expires_s});
}

absl::StatusOr<std::unique_ptr<CertificateWatch>> CertificateWatch::Start(CertificateFiles files,
                                                                          NodeId self) {
  std::unique_ptr<CertificateWatch> watch(new CertificateWatch(std::move(files), self));
  absl::StatusOr<CertificatePem> pem = ReadCertificate(watch->files_);
  if (!pem.ok()) return pem.status();
  auto current = watch->Check(*std::move(pem), 1);
  if (!current.ok()) return current.status();
  {
    absl::MutexLock lock(&watch->mutex_);
    watch->current_ = *std::move(current);
  }
  watch->thread_ = std::thread([self = watch.get()] { self->Run(); });
  return watch;
}

CertificateWatch::~CertificateWatch() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const CertificateWatch::Current> CertificateWatch::current() const {
  absl::MutexLock lock(&mutex_);
  return current_;
}

void CertificateWatch::Run() {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&ended_), kLookEvery)) return;
    }
    Look();
  }
}

// Contents are compared rather than times of files, which may stand still between two changes. What was
// refused is checked again: it may only have been early.
void CertificateWatch::Look() {
  absl::StatusOr<CertificatePem> pem = ReadCertificate(files_);
  const std::shared_ptr<const Current> before = current();
  if (pem.ok() && *pem == before->pem) {
    refused_.reset();
    return;
  }
  auto next = pem.ok() ? Check(*pem, before->number + 1) : pem.status();
  if (!next.ok()) {
    if (refused_ && *refused_ == pem) return;
    failures_.fetch_add(1, std::memory_order_relaxed);
    spdlog::error("{}; the certificate before stays in use", std::string(next.status().message()));
    refused_ = std::move(pem);
    return;
  }
  refused_.reset();
  spdlog::info("the certificate {} was replaced, and is in use", files_.certificate);
  absl::MutexLock lock(&mutex_);
  current_ = *std::move(next);
}

}  // namespace gyre
