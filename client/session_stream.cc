// The reactor of a session.
#include "client/session_stream.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "client/wire.h"

namespace gyre {
inline namespace sdk {

void SessionStream::Start(v1::Kv::Stub& stub) {
  self_ = shared_from_this();
  running_->Enter();
  stub.async()->Session(&context_, this);
  AddHold();  // writes are started from outside of reactions
  Read();
  StartCall();
}

void SessionStream::Read() {
  read_arena_.Reset();
  replies_ = google::protobuf::Arena::CreateMessage<v1::SessionReplies>(&read_arena_);
  StartRead(replies_);
}

bool SessionStream::BeginWrite() {
  const std::lock_guard lock(mutex_);
  if (writing_ || broken_) return false;
  writing_ = true;
  return true;
}

void SessionStream::Write(std::span<const Item> items) {
  assert(!items.empty());
  write_arena_.Reset();
  auto* batch = google::protobuf::Arena::CreateMessage<v1::SessionBatch>(&write_arena_);
  batch->mutable_requests()->Reserve(static_cast<int>(items.size()));
  for (const Item& item : items) {
    v1::SessionRequest& request = *batch->add_requests();
    request.set_id(item.id);
    const int64_t timeout_ms = item.time_allowed.count();
    request.set_timeout_ms(
        static_cast<uint32_t>(std::clamp<int64_t>(timeout_ms, 1, std::numeric_limits<int32_t>::max())));
    ToWire(item.exchange->request(), request);
  }
  StartWrite(batch);
}

void SessionStream::OnReadDone(bool ok) {
  if (!ok) {
    owner_->OnBroken(number_);
    return Note(Event::kBroken);
  }
  owner_->OnReplies(*replies_);
  Read();
}

void SessionStream::OnWriteDone(bool ok) {
  Note(Event::kWritten);
  if (ok) owner_->OnWritten();  // else the read fails too, and that is what ends the stream
}

void SessionStream::Note(Event event) {
  bool over;
  {
    const std::lock_guard lock(mutex_);
    if (event == Event::kBroken) broken_ = true;
    if (event == Event::kWritten) writing_ = false;
    over = broken_ && !writing_;
  }
  // Each event happens at most once after the stream broke, and only the later of the two finds it over.
  if (over) RemoveHold();
}

void SessionStream::OnDone(const grpc::Status& status) {
  owner_->OnEnded(number_, status);
  const std::shared_ptr<Running> running = running_;
  self_.reset();
  running->Leave();
}

}  // namespace sdk
}  // namespace gyre
