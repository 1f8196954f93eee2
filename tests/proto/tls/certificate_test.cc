// What is no certificate that could be used is refused with the file and the reason.
#include "proto/tls/certificate.h"

#include <ctime>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/proto/tls/issued.h"

namespace gyre {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kNode[] = "node 7c41a08fe2b69d13 127.0.0.1";
constexpr char kNodeName[] = "node-7c41a08fe2b69d13";

class CertificateTest : public testing::Test {
 protected:
  static std::string Refusal(const CertificateFiles& files, const CertificatePem& pem,
                             CertificateUse use = CertificateUse::kServerAndClient) {
    const auto facts = CheckCertificate(files, pem, use);
    if (facts.ok()) return "none";
    EXPECT_EQ(facts.status().code(), absl::StatusCode::kUnauthenticated);
    return std::string(facts.status().message());
  }

  const Issued issued_{"certificate_test"};
};

TEST_F(CertificateTest, WhatIsRightIsTaken) {
  issued_.Make(std::string(kNode) + " --days 10");
  const CertificateFiles files = issued_.Files(kNodeName);
  const auto pem = ReadCertificate(files);
  ASSERT_TRUE(pem.ok()) << pem.status();
  const auto facts = CheckCertificate(files, *pem, CertificateUse::kServerAndClient);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(facts->uris, ElementsAre("gyre:node:7c41a08fe2b69d13"));
  constexpr double kDay = 24 * 60 * 60;
  EXPECT_NEAR(static_cast<double>(facts->expires_s), static_cast<double>(std::time(nullptr)) + 10 * kDay,
              kDay);
}

TEST_F(CertificateTest, FilesThatCannotBeReadAreNamed) {
  const CertificateFiles files = issued_.Files("absent");
  const auto pem = ReadCertificate(files);
  EXPECT_EQ(pem.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(pem.status().message()), HasSubstr(files.certificate + " cannot be read"));
}

TEST_F(CertificateTest, AClientsCertificateServesNobody) {
  issued_.Make("client shop");
  const CertificateFiles files = issued_.Files("client-shop");
  const auto pem = ReadCertificate(files);
  ASSERT_TRUE(pem.ok()) << pem.status();
  EXPECT_EQ(Refusal(files, *pem, CertificateUse::kClient), "none");
  EXPECT_THAT(Refusal(files, *pem), HasSubstr("as a server's"));
}

TEST_F(CertificateTest, WhatIsExpiredIsRefused) {
  issued_.Make(std::string(kNode) + " --days -1");
  const CertificateFiles files = issued_.Files(kNodeName);
  const auto pem = ReadCertificate(files);
  ASSERT_TRUE(pem.ok()) << pem.status();
  EXPECT_THAT(Refusal(files, *pem), HasSubstr("certificate has expired"));
}

TEST_F(CertificateTest, WhatAnotherAuthorityVouchesForIsRefused) {
  const Issued others("certificate_test_others");
  issued_.Make(kNode);
  others.Make(kNode);
  CertificateFiles files = issued_.Files(kNodeName);
  files.ca = others.Files(kNodeName).ca;
  const auto pem = ReadCertificate(files);
  ASSERT_TRUE(pem.ok()) << pem.status();
  EXPECT_THAT(Refusal(files, *pem), HasSubstr("is not valid by " + files.ca));
  // Beside another one, ours is trusted: so one authority follows another.
  CertificatePem both = *pem;
  both.ca += ReadCertificate(issued_.Files(kNodeName))->ca;
  EXPECT_EQ(Refusal(files, both), "none");
}

TEST_F(CertificateTest, HalfOfTwoFilesIsRefused) {
  issued_.Make(kNode);
  const CertificateFiles files = issued_.Files(kNodeName);
  const auto before = ReadCertificate(files);
  issued_.Make(kNode);
  const auto after = ReadCertificate(files);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_THAT(Refusal(files, {after->ca, after->certificate, before->key}), HasSubstr("does not belong to"));
  EXPECT_THAT(Refusal(files, {after->ca, before->certificate, after->key}), HasSubstr("does not belong to"));
}

TEST_F(CertificateTest, EveryBeginningOfAFileIsRefused) {
  issued_.Make(kNode);
  const CertificateFiles files = issued_.Files(kNodeName);
  const auto pem = ReadCertificate(files);
  ASSERT_TRUE(pem.ok()) << pem.status();
  const CertificatePem whole = *pem;
  for (std::string CertificatePem::*part :
       {&CertificatePem::ca, &CertificatePem::certificate, &CertificatePem::key}) {
    const std::string& text = whole.*part;
    for (size_t length = 0; length + 1 < text.size(); ++length) {  // the last newline may be missing
      CertificatePem cut = whole;
      cut.*part = text.substr(0, length);
      EXPECT_NE(Refusal(files, cut), "none") << length << " of " << text.size();
    }
  }
  // Also where a whole one stands before the one that is cut off.
  CertificatePem two = whole;
  two.ca = whole.ca + whole.ca.substr(0, whole.ca.size() / 2);
  EXPECT_THAT(Refusal(files, two), HasSubstr("garbled"));
}

}  // namespace
}  // namespace gyre
