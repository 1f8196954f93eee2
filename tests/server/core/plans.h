// A small cluster and changes of it, for tests of plans.
#pragma once

#include <string>
#include <utility>

#include "server/core/plan.h"

namespace gyre {

inline constexpr NodeId A{1};
inline constexpr NodeId B{2};
inline constexpr NodeId C{3};
inline constexpr NodeId D{4};
inline constexpr NodeId E{5};
inline constexpr NodeId X{9};  // of no cluster

// A, B, C and D in zones of their own, each of weight 1; one keyspace with three replicas.
inline Layout Four() {
  Layout layout = FirstLayout({{A, "a", 1}, {B, "b", 1}, {C, "c", 1}, {D, "d", 1}});
  return *WithKeyspace(layout, {.name = "carts", .n = 2, .r = {}, .w = {}});
}

inline MemberChanges Adding(NodeId node, std::string zone = "e", uint32_t weight = 1) {
  return {.add = {{node, std::move(zone), weight}}};
}
inline MemberChanges Removing(NodeId node) { return {.remove = {node}}; }
inline MemberChanges Replacing(NodeId old, NodeId by, std::string zone) {
  return {.replace = {{old, {by, std::move(zone), 1}}}};
}

}  // namespace gyre
