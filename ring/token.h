// Tokens: where keys lie on the ring.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace gyre {

// A position on the ring of 2^64 positions. Positions wrap: after the largest comes 0.
struct Token {
  uint64_t value = 0;
  auto operator<=>(const Token&) const = default;
};

// The token of a key: XXH3-64 of its bytes, with seed 0. Never changes: keys on disk are ordered by it.
Token TokenOf(std::string_view key);

// Sixteen lower-case hexadecimal digits, so that the order of the text is the order of the tokens.
std::string ToString(Token token);

// A node's identity: chosen at random when its data directory is first used, and never its address.
struct NodeId {
  uint64_t value = 0;  // 0 names no node
  auto operator<=>(const NodeId&) const = default;
  explicit operator bool() const { return value != 0; }
  template <typename H>
  friend H AbslHashValue(H h, NodeId id) {
    return H::combine(std::move(h), id.value);
  }
};

// Sixteen lower-case hexadecimal digits.
std::string ToString(NodeId node);

// Reads what ToString wrote. False when `text` is anything else; `node` is then left as it was.
bool ParseNodeId(std::string_view text, NodeId& node);

}  // namespace gyre
