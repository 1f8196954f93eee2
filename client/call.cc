// The retry loop: attempts, waits and the end of a call.
#include "client/call.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

namespace gyre {
inline namespace sdk {
namespace {

using std::chrono::milliseconds;

std::string NewWriteId(Connection& connection) {
  const uint64_t words[2] = {connection.Random(), connection.Random()};
  std::string id(sizeof(words), '\0');
  std::memcpy(id.data(), words, sizeof(words));
  return id;
}

const std::string& KeyspaceOf(const Request& request) {
  return std::visit([](const auto& r) -> const std::string& { return r.keyspace; }, request);
}

std::string_view KeyOf(const Request& request) {
  return std::visit(
      [](const auto& r) -> std::string_view {
        if constexpr (requires { r.key; }) return r.key;
        return {};  // a page may be read by any node
      },
      request);
}

}  // namespace

Call::Call(std::shared_ptr<Connection> connection, Request request, Settings settings)
    : connection_(std::move(connection)),
      request_(std::move(request)),
      settings_(settings),
      plan_(settings.kind) {
  assert(settings.timeout.count() > 0);
  if (auto* put = std::get_if<PutRequest>(&request_); put != nullptr && put->write_id.empty()) {
    put->write_id = NewWriteId(*connection_);
  }
  deadline_ = connection_->Now() + settings.timeout;
  if (settings.not_first) tried_.push_back(*settings.not_first);
}

void Call::Start() { AttemptElsewhere(); }

void Call::Done(AttemptResult result) {
  const NextStep next = plan_.After(result.fate, result.status);
  if (result.fate == Fate::kAnswered && result.status.ok()) return Finish(std::move(result.reply));
  if (next == NextStep::kFinish) return End(plan_.Final());
  if (next == NextStep::kSameNode) return Later(next);
  tried_.push_back(peer_);
  // A node that could not be reached costs no wait.
  if (result.fate == Fate::kNotSent) return AttemptElsewhere();
  Later(next);
}

void Call::Attempt(PeerId peer) {
  const TimePoint now = connection_->Now();
  if (now >= deadline_) return End(plan_.AtDeadline());
  auto* put = std::get_if<PutRequest>(&request_);
  // Also to the same node: its process may be another by now, and it may forward to any coordinator.
  if (put != nullptr && plan_.may_have_been_sent()) put->retry = true;
  peer_ = peer;
  if (asked_.size() == kAskedMax) asked_.erase(asked_.begin());
  asked_.push_back(peer);
  // Rounded up, so that the node is never told 0, which means something else.
  const milliseconds left = std::chrono::ceil<milliseconds>(deadline_ - now);
  const milliseconds attempt = RetryPlan::AttemptTimeout(settings_.kind, settings_.timeout);
  connection_->Send(peer, shared_from_this(),
                    {.deadline = std::min(deadline_, now + attempt), .time_allowed = left});
}

void Call::AttemptElsewhere() {
  std::optional<PeerId> peer;
  if (tried_.size() < kRoundMax) peer = connection_->Pick(KeyspaceOf(request_), KeyOf(request_), tried_);
  if (peer) return Attempt(*peer);
  if (tried_.empty())
    return End(absl::UnavailableError("there is no node to ask: give at least one endpoint"));
  tried_.clear();
  if (plan_.AfterRound() == NextStep::kFinish) return End(plan_.Final());
  Later(NextStep::kOtherNode);
}

void Call::Later(NextStep next) {
  const TimePoint time = std::min(deadline_, connection_->Now() + plan_.Delay(connection_->Random()));
  connection_->RunAt(time, [self = shared_from_this(), next](Wake wake) {
    if (wake == Wake::kStopped) {
      self->plan_.After(Fate::kNotSent, absl::CancelledError("the client was destroyed"));
      return self->End(self->plan_.Final());
    }
    if (self->connection_->Now() >= self->deadline_) return self->End(self->plan_.AtDeadline());
    if (next == NextStep::kSameNode) return self->Attempt(self->peer_);
    self->AttemptElsewhere();
  });
}

void Call::End(absl::Status status) {
  assert(!status.ok());
  std::string asked;
  for (const PeerId peer : asked_) {
    if (!asked.empty()) asked += ',';
    asked += connection_->AddressOf(peer);
  }
  if (!asked.empty()) status.SetPayload(kAskedPayload, absl::Cord(asked));
  Finish(std::move(status));
}

}  // namespace sdk
}  // namespace gyre
