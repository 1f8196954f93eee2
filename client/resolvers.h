// Resolvers over values of a type: siblings are decoded, one value is made of them, and that is encoded.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/client.h"

namespace gyre {
inline namespace sdk {

/// Between a type and the bytes that are stored. Both functions are called from any thread.
template <typename T>
struct Codec {
  /// An error for bytes that are none of a T: an Update then ends with it, and writes nothing.
  std::function<absl::StatusOr<T>(std::string_view)> decode;
  /// What decode makes the same value of.
  std::function<std::string(const T&)> encode;
};

/// A Client::Resolver that works on values of a type.
///
/// `resolve` is given all siblings (none: the key is not there) and returns what replaces them; nullopt
/// deletes the key. It has the same duties as any resolver: it depends on its argument only.
template <typename T>
Client::Resolver Typed(Codec<T> codec, std::function<std::optional<T>(std::vector<T>)> resolve) {
  return [codec = std::move(codec), resolve = std::move(resolve)](
             const std::vector<std::string>& values) -> absl::StatusOr<std::optional<std::string>> {
    std::vector<T> decoded;
    decoded.reserve(values.size());
    for (const std::string& value : values) {
      absl::StatusOr<T> one = codec.decode(value);
      if (!one.ok()) return one.status();
      decoded.push_back(*std::move(one));
    }
    const std::optional<T> made = resolve(std::move(decoded));
    if (!made) return std::nullopt;
    return codec.encode(*made);
  };
}

}  // namespace sdk
}  // namespace gyre
