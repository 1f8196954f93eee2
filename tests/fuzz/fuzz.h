// What the fuzz targets share: the shapes of what they assert.
//
// A target asserts with assert(), which stays on in every build of ours.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "storage/format/bytes.h"

namespace gyre::fuzz {

inline std::string_view Text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// `bytes` with their end replaced by the checksum of the rest: so that mutations get behind it.
inline std::string Sealed(std::string_view bytes) {
  ByteWriter out(bytes.size() + kChecksumBytes);
  out.Bytes(bytes.substr(0, bytes.size() - std::min(bytes.size(), kChecksumBytes)));
  return out.Finish();
}

// A format in which a value has one encoding: what `decode` takes is what `encode` makes.
// `check` is told each value with its bytes.
template <typename Decode, typename Encode, typename Check>
void Canonical(std::string_view input, Decode decode, Encode encode, Check check) {
  for (const std::string& bytes : {std::string(input), Sealed(input)}) {
    const auto value = decode(bytes);
    if (!value.ok()) continue;
    assert(encode(*value) == bytes);
    check(*value, bytes);
  }
}
template <typename Decode, typename Encode>
void Canonical(std::string_view input, Decode decode, Encode encode) {
  Canonical(input, decode, encode, [](const auto&, const std::string&) {});
}

// A format in which a value has several: `normal` makes of bytes the encoding of what they decode to, or
// nothing of bytes that are refused. What it makes it takes, and leaves as it is.
template <typename Normal>
void Stable(std::string_view input, Normal normal) {
  const auto once = normal(std::string(input));
  if (once) assert(normal(*once) == once);
}

}  // namespace gyre::fuzz
