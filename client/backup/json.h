// Reading JSON that anybody may have written: bounded, and without the library's conversions between kinds.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

namespace gyre::backup {

using Json = nlohmann::ordered_json;

// Thrown while something is read, and caught by who reads it: what it says is not of the right kind.
struct Wrong {
  std::string what;
};

// Throws Wrong when `text` is no object, or one that is deeper than any of ours: to copy it would take a
// stack as deep.
inline Json ParseObject(std::string_view text) {
  const auto bounded = [](int depth, Json::parse_event_t, Json&) {
    constexpr int kDepthMax = 8;
    if (depth > kDepthMax) throw Wrong{"it is nested too deeply"};
    return true;
  };
  Json json = Json::parse(text, bounded, /*allow_exceptions=*/false);
  if (!json.is_object()) throw Wrong{"a line is no JSON object"};
  return json;
}

template <typename T>
T Take(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) throw Wrong{std::string("a line lacks \"") + name + "\""};
  // The library would make a number of any other that fits, or does not.
  if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool>) {
    if (!found->is_number_unsigned() || found->get<uint64_t>() > std::numeric_limits<T>::max()) {
      throw Wrong{std::string("\"") + name + "\" is out of range"};
    }
  }
  try {
    return found->get<T>();
  } catch (const Json::exception&) {
    throw Wrong{std::string("\"") + name + "\" is of the wrong kind"};
  }
}

}  // namespace gyre::backup
