// A call whose answer goes to a callback. Internal to the SDK.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "client/call.h"

namespace gyre {
inline namespace sdk {

template <typename Result>
class CallOf final : public Call {
 public:
  CallOf(const std::shared_ptr<Connection>& connection, Request request, Settings settings,
         std::function<void(absl::StatusOr<Result>)> done)
      : Call(connection, std::move(request), settings), done_(std::move(done)) {}

 protected:
  void Finish(absl::StatusOr<Reply> reply) override {
    // Moved out first, so that what the callback owns dies with this call and not with its last reference.
    const std::function<void(absl::StatusOr<Result>)> done = std::move(done_);
    if (!reply.ok()) return done(reply.status());
    if (Result* result = std::get_if<Result>(&*reply)) return done(std::move(*result));
    done(absl::InternalError("the node answered with another kind of reply than was asked for"));
  }

 private:
  std::function<void(absl::StatusOr<Result>)> done_;
};

}  // namespace sdk
}  // namespace gyre
