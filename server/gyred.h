// A running node: every part of the server, made in order and taken down in order.
#pragma once

#include <absl/status/statusor.h>
#include <memory>
#include <string>

#include "server/config.h"

namespace gyre {

class Gyred {
 public:
  // Opens the data directory, the store and the ports, and serves. Errors are sentences for the operator:
  // FAILED_PRECONDITION, UNAVAILABLE, DATA_LOSS.
  static absl::StatusOr<std::unique_ptr<Gyred>> Start(const Config& config);
  virtual ~Gyred() = default;

  // Stops taking calls, answers what is under way, makes the end clean. Takes at most about ten seconds.
  virtual void Drain() = 0;
};

}  // namespace gyre
