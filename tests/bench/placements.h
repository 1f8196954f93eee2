// Ways to place keys on nodes, side by side: the ring's and those it is compared with. None but the ring's is
// used by the product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ring/token.h"

namespace gyre {

// Where keys lie, for one set of nodes. Immutable.
class Placed {
 public:
  virtual ~Placed() = default;
  virtual NodeId NodeOf(Token key) const = 0;
  // What a lookup reads, beside the ids of the nodes.
  virtual size_t state_bytes() const = 0;
  // The same after a node came or left: where keys lie then may depend on where they lay.
  virtual std::unique_ptr<Placed> With(NodeId node) const = 0;
  // REQUIRES: `node` is not the only one.
  virtual std::unique_ptr<Placed> Without(NodeId node) const = 0;
};

struct PlacementScheme {
  std::string_view name;
  std::unique_ptr<Placed> (*place)(std::vector<NodeId> nodes);
  std::string_view clients;  // what it asks of whoever looks up
};

// In the order of the table of ring/README.md.
const std::vector<PlacementScheme>& PlacementSchemes();

// REQUIRES: there is such a scheme.
const PlacementScheme& SchemeNamed(std::string_view name);

inline constexpr std::string_view kModulo = "hash modulo N";
inline constexpr std::string_view kOneToken = "ring, one token";
inline constexpr std::string_view kHashedRing = "ring, 128 hashed";
inline constexpr std::string_view kBalancedRing = "ring, 16 balanced";
inline constexpr std::string_view kRendezvous = "rendezvous (HRW)";
inline constexpr std::string_view kJump = "jump hash";
inline constexpr std::string_view kMaglev = "Maglev, 65537";
inline constexpr std::string_view kSlots = "16384 fixed slots";

}  // namespace gyre
