// What an operator may change in a layout, as functions of layouts.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "server/core/layout.h"
#include "server/core/time.h"

namespace gyre {

// A change an operator asked for; answered once, by its ticket.
struct LayoutChange {
  struct Create {
    KeyspaceSpec keyspace;
  };
  struct Set {
    std::string name;
    std::optional<ReplicaCount> r;
    std::optional<ReplicaCount> w;
    std::optional<uint64_t> ttl_ms;
    std::optional<bool> strict;
  };
  struct Drop {
    std::string name;
  };
  using What = std::variant<Create, Set, Drop>;
  uint64_t ticket = 0;
  Micros deadline;
  What what;
};

// The successor of `base` with that change, or why there is none.
absl::StatusOr<Layout> Apply(const Layout& base, const LayoutChange::What& what);

// Whether a layout shows what the change asked for, whoever made it so.
bool Shows(const View& view, const LayoutChange::What& what);

}  // namespace gyre
