// A running node: every part of the server, made in order and taken down in order.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <memory>
#include <string>

#include "server/config.h"
#include "server/store_damage.h"

namespace gyre {

class Gyred {
 public:
  // Opens the data directory, the store and the ports, and serves. A store that is damaged is rebuilt first,
  // for as long as `go_on` says (server/node_store.h); `damage` must outlive the node. Errors are sentences
  // for the operator: FAILED_PRECONDITION, UNAVAILABLE, DATA_LOSS; CANCELLED after `go_on` said no.
  static absl::StatusOr<std::unique_ptr<Gyred>> Start(const Config& config, StoreDamage& damage,
                                                      absl::FunctionRef<bool()> go_on);
  virtual ~Gyred() = default;

  // To be called about once a second, on the thread that started it. True: its store is damaged and shall be
  // rebuilt. So this node is to be drained and ended, and started anew.
  virtual bool WantsNewStart() = 0;

  // Why it can serve no more; OK while it can. To be asked as often: then it is to be drained, too.
  virtual absl::Status end() const = 0;

  // Stops taking calls, answers what is under way, makes the end clean. Takes at most about ten seconds.
  virtual void Drain() = 0;
};

}  // namespace gyre
