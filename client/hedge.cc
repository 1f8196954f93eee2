// The race of two reads.
#include "client/hedge.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "client/call_of.h"

namespace gyre {
inline namespace sdk {
namespace {

// Threads: any; the two calls and the timer meet here.
class Race : public std::enable_shared_from_this<Race> {
 public:
  Race(std::shared_ptr<Connection> connection, GetRequest request, Call::Settings settings, Hedging hedging,
       std::function<void(absl::StatusOr<GetResult>)> done)
      : connection_(std::move(connection)),
        request_(std::move(request)),
        settings_(settings),
        hedging_(std::move(hedging)),
        done_(std::move(done)) {}

  void Start() {
    hedging_.budget->Earn();
    const TimePoint begun = connection_->Now();
    const auto first = Begin(settings_);
    connection_->RunAt(begun + hedging_.after, [self = shared_from_this(), first, begun](Wake wake) {
      if (wake == Wake::kTime) self->Hedge(first->peer(), begun);
    });
  }

 private:
  std::shared_ptr<Call> Begin(Call::Settings settings) {
    {
      const std::lock_guard lock(mutex_);
      ++running_;
    }
    auto call = std::make_shared<CallOf<GetResult>>(
        connection_, request_, settings,
        [self = shared_from_this()](absl::StatusOr<GetResult> result) { self->Take(std::move(result)); });
    call->Start();
    return call;
  }

  void Hedge(PeerId slow, TimePoint begun) {
    {
      const std::lock_guard lock(mutex_);
      if (done_ == nullptr) return;
    }
    const PeerId avoid[] = {slow};
    const auto left =
        settings_.timeout - std::chrono::floor<std::chrono::milliseconds>(connection_->Now() - begun);
    if (left.count() <= 0 || !connection_->Pick(request_.keyspace, request_.key, avoid) ||
        !hedging_.budget->Spend()) {
      return;
    }
    Begin({.kind = CallKind::kRead, .timeout = left, .not_first = slow});
  }

  void Take(absl::StatusOr<GetResult> result) {
    std::function<void(absl::StatusOr<GetResult>)> done;
    {
      const std::lock_guard lock(mutex_);
      --running_;
      if (result.ok() || running_ == 0) done = std::exchange(done_, nullptr);
    }
    if (done) done(std::move(result));
  }

  const std::shared_ptr<Connection> connection_;
  const GetRequest request_;
  const Call::Settings settings_;
  const Hedging hedging_;
  std::mutex mutex_;
  int running_ = 0;                                      // guarded by mutex_
  std::function<void(absl::StatusOr<GetResult>)> done_;  // guarded by mutex_; null once it was called
};

}  // namespace

void HedgeBudget::Earn() {
  const std::lock_guard lock(mutex_);
  saved_ = std::min(kSavedMax, saved_ + each_read_);
}

bool HedgeBudget::Spend() {
  const std::lock_guard lock(mutex_);
  if (saved_ < 1) return false;
  saved_ -= 1;
  return true;
}

void StartHedgedGet(const std::shared_ptr<Connection>& connection, GetRequest request,
                    Call::Settings settings, const Hedging& hedging,
                    std::function<void(absl::StatusOr<GetResult>)> done) {
  assert(hedging.after.count() > 0);
  std::make_shared<Race>(connection, std::move(request), settings, hedging, std::move(done))->Start();
}

}  // namespace sdk
}  // namespace gyre
