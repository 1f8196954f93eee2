// Hashing keys to tokens, and tokens and node ids as text.
#include "ring/token.h"

#include <xxhash.h>

namespace gyre {
namespace {

constexpr size_t kHexDigits = 16;
constexpr std::string_view kDigits = "0123456789abcdef";

std::string Hex(uint64_t value) {
  std::string text(kHexDigits, '0');
  for (size_t i = kHexDigits; i-- > 0; value >>= 4) text[i] = kDigits[value & 0xf];
  return text;
}

}  // namespace

Token TokenOf(std::string_view key) { return Token{XXH3_64bits(key.data(), key.size())}; }

std::string ToString(Token token) { return Hex(token.value); }

std::string ToString(NodeId node) { return Hex(node.value); }

bool ParseNodeId(std::string_view text, NodeId& node) {
  if (text.size() != kHexDigits) return false;
  uint64_t value = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return false;
    value = value << 4 | digit;
  }
  node = NodeId{value};
  return true;
}

}  // namespace gyre
