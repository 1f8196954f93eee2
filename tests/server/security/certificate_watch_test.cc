// A certificate that is replaced step by step is used when it is whole, and not before.
#include "server/security/certificate_watch.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "tests/proto/tls/issued.h"

namespace gyre {
namespace {

using testing::HasSubstr;

constexpr NodeId kSelf{0x7c41a08fe2b69d13};
constexpr char kNode[] = "node 7c41a08fe2b69d13 127.0.0.1";
constexpr char kNodeName[] = "node-7c41a08fe2b69d13";

class CertificateWatchTest : public testing::Test {
 protected:
  CertificateWatchTest() {
    issued_.Make(kNode);
    old_ = *ReadCertificate(files_);
    watch_ = *CertificateWatch::Start(files_, kSelf);
  }

  // Puts the file of another certificate in the place of ours.
  static void Replace(const std::string& file, const std::string& by) {
    std::filesystem::copy_file(by, file + ".new", std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(file + ".new", file);
  }

  template <typename Condition>
  static bool Within(std::chrono::seconds time, Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + time;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  bool Refused(uint64_t times) {
    return Within(std::chrono::seconds(10), [&] { return watch_->failures() == times; });
  }

  const Issued issued_{"certificate_watch_test"};
  const Issued renewed_{"certificate_watch_test_renewed"};
  const CertificateFiles files_ = issued_.Files(kNodeName);
  CertificatePem old_;
  std::unique_ptr<CertificateWatch> watch_;
};

TEST_F(CertificateWatchTest, OneOfAnotherNodeOrRoleDoesNotStart) {
  const auto other = CertificateWatch::Start(files_, NodeId{1});
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("is of node 7c41a08fe2b69d13, and this is node 0000000000000001: issue one for "
                        "gyre:node:0000000000000001"));
}

TEST_F(CertificateWatchTest, AHalfIsRefusedOnceAndTheWholeIsTaken) {
  issued_.Make("client shop");
  const CertificateFiles next = issued_.Files("client-shop");
  // The key of another pair: does not belong.
  Replace(files_.key, next.key);
  EXPECT_TRUE(Refused(1));
  EXPECT_EQ(watch_->current()->pem, old_);
  // The whole other pair: of a client.
  Replace(files_.certificate, next.certificate);
  EXPECT_TRUE(Refused(2));
  EXPECT_EQ(watch_->current()->pem, old_);
  // Another one of ours, whole.
  issued_.Make(kNode);
  EXPECT_TRUE(Within(std::chrono::seconds(10), [&] { return watch_->current()->number != 1; }));
  EXPECT_EQ(watch_->current()->pem, *ReadCertificate(files_));
  EXPECT_NE(watch_->current()->pem, old_);
}

TEST_F(CertificateWatchTest, OneThatIsExpiredOrGoneOrOfStrangersIsRefused) {
  issued_.Make(std::string(kNode) + " --days -1");
  EXPECT_TRUE(Within(std::chrono::seconds(10), [&] { return watch_->failures() >= 1; }));
  const uint64_t failures = watch_->failures();
  std::filesystem::remove(files_.certificate);
  EXPECT_TRUE(Refused(failures + 1));
  renewed_.Make(kNode);
  Replace(files_.key, renewed_.Files(kNodeName).key);
  Replace(files_.certificate, renewed_.Files(kNodeName).certificate);
  EXPECT_TRUE(Within(std::chrono::seconds(10), [&] { return watch_->failures() >= failures + 2; }));
  EXPECT_EQ(watch_->current()->pem, old_);
  EXPECT_EQ(watch_->current()->number, 1u);
}

}  // namespace
}  // namespace gyre
