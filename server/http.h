// The HTTP side of a node: /metrics, /livez, /readyz.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <functional>
#include <memory>
#include <string>

namespace gyre {

// Serves from its own few threads between Start and its destruction, which waits for requests under way.
class HttpServer {
 public:
  // Called from any of the server's threads, several at a time; must return quickly and outlive the server.
  struct Hooks {
    std::function<std::string()> metrics;  // the body of /metrics
    std::function<absl::Status()> ready;   // /readyz says 200 when OK, else 503 and the message
  };

  // INVALID_ARGUMENT when `address` is no HOST:PORT; UNAVAILABLE when it cannot be listened on.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address, Hooks hooks);

  virtual ~HttpServer() = default;
};

}  // namespace gyre
