// A mock of the Connection below a Client, for tests of programs that use one: no node, no thread, no
// waiting.
#pragma once

#include <chrono>
#include <functional>
#include <gmock/gmock.h>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "client/connection.h"

namespace gyre {
inline namespace sdk {
namespace mocks {

/// A GoogleMock of Connection; link GTest::gmock.
///
///     auto connection = std::make_shared<testing::NiceMock<gyre::mocks::MockConnection>>();
///     EXPECT_CALL(*connection, Send).WillOnce(gyre::mocks::Answer(gyre::PutResult{.acks = 2}));
///     gyre::Client client(connection, {});
///
/// Where nothing else is expected there is one node, number 0, which cannot be reached; time stands at the
/// clock's, and what is to run later runs at once, at the time that it asked for. So a test of retries waits
/// for nothing.
///
/// Threads: as GoogleMock.
class MockConnection : public Connection {
 public:
  MockConnection() {
    using testing::_;
    ON_CALL(*this, Pick(_, _, _))
        .WillByDefault([](std::string_view, std::string_view, std::span<const PeerId> avoid) {
          return avoid.empty() ? std::optional<PeerId>(0) : std::nullopt;
        });
    ON_CALL(*this, Send(_, _, _)).WillByDefault([](PeerId, std::shared_ptr<Exchange> exchange, SendOptions) {
      exchange->Done(
          {.fate = Fate::kNotSent, .status = absl::UnavailableError("the mock refuses"), .reply = {}});
    });
    ON_CALL(*this, Now()).WillByDefault([this] { return now_; });
    ON_CALL(*this, RunAt(_, _)).WillByDefault([this](TimePoint time, std::function<void(Wake)> task) {
      if (time > now_) now_ = time;
      task(Wake::kTime);
    });
  }

  MOCK_METHOD(std::optional<PeerId>, Pick, (std::string_view, std::string_view, std::span<const PeerId>),
              (override));
  MOCK_METHOD(void, Send, (PeerId, std::shared_ptr<Exchange>, SendOptions), (override));
  MOCK_METHOD(TimePoint, Now, (), (override));
  MOCK_METHOD(void, RunAt, (TimePoint, std::function<void(Wake)>), (override));
  MOCK_METHOD(uint64_t, Random, (), (override));
  MOCK_METHOD(void, Shutdown, (), (override));

 private:
  TimePoint now_ = std::chrono::steady_clock::now();
};

/// What Send does when the node answers with `reply`, such as a PutResult.
inline auto Answer(Reply reply) {
  return
      [reply = std::move(reply)](PeerId, const std::shared_ptr<Exchange>& exchange, Connection::SendOptions) {
        exchange->Done({.fate = Fate::kAnswered, .status = absl::OkStatus(), .reply = reply});
      };
}

/// What Send does when the attempt ends so: the node's word, or the connection's.
inline auto Fail(Fate fate, absl::Status status) {
  return [fate, status = std::move(status)](PeerId, const std::shared_ptr<Exchange>& exchange,
                                            Connection::SendOptions) {
    exchange->Done({.fate = fate, .status = status, .reply = {}});
  };
}

}  // namespace mocks
}  // namespace sdk
}  // namespace gyre
