// A session: one client's stream of calls.
#include "server/rpc/session.h"

#include <algorithm>
#include <utility>

#include "server/rpc/convert_kv.h"

namespace gyre {
namespace {

constexpr int64_t kDefaultTimeoutMs = 5000;
constexpr int64_t kTimeoutMsMax = 10 * 60 * 1000;

}  // namespace

Micros ServerTimeout(int64_t client_timeout_ms) {
  const int64_t asked =
      client_timeout_ms <= 0 ? kDefaultTimeoutMs : std::min(client_timeout_ms, kTimeoutMsMax);
  return Micros{std::max<int64_t>(asked * 1000 - std::min<int64_t>(asked * 100, 500'000), 1)};
}

std::shared_ptr<Session> Session::Start(Backend& backend, const Rights* rights) {
  std::shared_ptr<Session> session(new Session(backend, rights));
  session->number_ = backend.calls.Add(session);
  backend.counters.sessions_open.fetch_add(1, std::memory_order_relaxed);
  session->StartRead(&session->incoming_);
  return session;
}

void Session::OnReadDone(bool ok) {
  std::vector<Input> inputs;
  const Now now = backend_.clock.Read();
  absl::MutexLock lock(&mutex_);
  reading_ = false;
  if (!ok) {
    half_closed_ = true;
    return FinishIfOver();
  }
  inputs.reserve(static_cast<size_t>(incoming_.requests_size()));
  backend_.counters.session_calls.fetch_add(static_cast<uint64_t>(incoming_.requests_size()),
                                            std::memory_order_relaxed);
  for (v1::SessionRequest& request : *incoming_.mutable_requests()) {
    const uint64_t id = request.id();
    const Micros deadline = now.steady + ServerTimeout(request.timeout_ms());
    absl::StatusOr<Call> call = ToCall(std::move(request));
    if (!call.ok()) {
      AddReply(id, {.status = call.status()});
      continue;
    }
    if (absl::Status status = CheckRights(rights_, *call); !status.ok()) {
      backend_.counters.calls_denied.fetch_add(1, std::memory_order_relaxed);
      AddReply(id, {.status = std::move(status)});
      continue;
    }
    backend_.counters.hot_keys.Note(*call);
    const uint32_t place = next_place_++;
    ids_[place] = id;
    inputs.push_back(ClientCall{Calls::TicketFor(number_, place), *std::move(call), deadline});
  }
  WriteNext();
  if (ids_.size() < backend_.calls_in_flight_max) {
    reading_ = true;
    StartRead(&incoming_);
  }
  backend_.lane.PushAll(std::move(inputs));
}

void Session::Answered(std::vector<Outbox::Reply> replies) {
  absl::MutexLock lock(&mutex_);
  for (Outbox::Reply& reply : replies) {
    const auto id = ids_.find(Calls::PlaceOf(reply.ticket));
    if (id == ids_.end()) continue;
    AddReply(id->second, std::move(reply.result));
    ids_.erase(id);
  }
  WriteNext();
  if (!reading_ && !half_closed_ && !finished_ && ids_.size() < backend_.calls_in_flight_max) {
    reading_ = true;
    StartRead(&incoming_);
  }
  FinishIfOver();
}

void Session::AddReply(uint64_t id, CallResult result) {
  if (!result.status.ok()) backend_.counters.calls_failed.fetch_add(1, std::memory_order_relaxed);
  const size_t waiting = outgoing_.size() - (writing_ ? 1 : 0);
  if (waiting == 0 || outgoing_.back().bytes > kReplyBytesMax) outgoing_.emplace_back();
  v1::SessionReply& reply = *outgoing_.back().message.add_replies();
  reply.set_id(id);
  FromResult(std::move(result), reply);
  outgoing_.back().bytes += reply.ByteSizeLong();
}

void Session::WriteNext() {
  if (writing_ || finished_ || outgoing_.empty()) return;
  writing_ = true;
  StartWrite(&outgoing_.front().message);
}

void Session::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  outgoing_.pop_front();
  if (!ok) {
    half_closed_ = true;
    outgoing_.clear();
    ids_.clear();
  }
  WriteNext();
  FinishIfOver();
}

// The client went away: its calls go on, nobody is told.
void Session::OnCancel() {
  absl::MutexLock lock(&mutex_);
  half_closed_ = true;
  ids_.clear();
  FinishIfOver();
}

void Session::FinishIfOver() {
  if (!half_closed_ || finished_ || writing_ || !outgoing_.empty() || !ids_.empty()) return;
  finished_ = true;
  Finish(grpc::Status::OK);
}

void Session::OnDone() {
  backend_.counters.sessions_open.fetch_sub(1, std::memory_order_relaxed);
  backend_.calls.Remove(number_);
}

}  // namespace gyre
