// Between absl's and gRPC's statuses: the codes are the same.
#pragma once

#include <absl/status/status.h>
#include <string>
#include <string_view>

#include "proto/kv.grpc.pb.h"

namespace gyre {

// A message that quotes what a client sent is as long as the client likes, but it travels in HTTP/2 trailers,
// of which 8 KiB are the usual limit after escaping: a longer one would replace the status by another. Cut
// between characters.
inline std::string BoundedMessage(std::string_view message) {
  constexpr size_t kBytesMax = 1024;
  if (message.size() <= kBytesMax) return std::string(message);
  size_t end = kBytesMax;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
  return std::string(message.substr(0, end)) + "...";
}

inline grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()),
          BoundedMessage({status.message().data(), status.message().size()})};
}

inline absl::Status NotFormed() {
  return absl::UnavailableError("this node has not joined a cluster yet: it still looks for the others");
}

// Ends a unary call with a status.
inline grpc::ServerUnaryReactor* Finished(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace gyre
