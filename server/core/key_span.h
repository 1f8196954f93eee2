// Ranges of tokens as what they are on disk: spans of row keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ring/token_range.h"
#include "storage/format/row_key.h"

namespace gyre {

// The row keys from `begin` on that are below `end`.
struct KeySpan {
  std::string begin;
  std::string end;
  bool operator==(const KeySpan&) const = default;
};

// One span, or two where the range wraps.
inline std::vector<KeySpan> SpansOf(uint32_t keyspace, const TokenRange& range) {
  constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
  const auto span = [&](uint64_t first, uint64_t last) {
    return KeySpan{RowKeyFloor(keyspace, first), RowKeyCeiling(keyspace, last)};
  };
  const uint64_t first = range.begin.value + 1;  // the last token is before the first
  if (first <= range.end.value) return {span(first, range.end.value)};
  return {span(0, range.end.value), span(first, kLast)};
}

// Disjoint spans, to be asked whether they hold a row.
class KeySpans {
 public:
  KeySpans() = default;
  explicit KeySpans(std::vector<KeySpan> spans) : spans_(std::move(spans)) {
    std::ranges::sort(spans_, {}, &KeySpan::begin);
  }
  bool empty() const { return spans_.empty(); }
  bool Contain(std::string_view row_key) const {
    const auto next = std::ranges::upper_bound(spans_, row_key, {},
                                               [](const KeySpan& s) { return std::string_view(s.begin); });
    return next != spans_.begin() && row_key < std::prev(next)->end;
  }
  // Any row key from `begin` on that is below `end`.
  bool Meet(std::string_view begin, std::string_view end) const {
    return std::ranges::any_of(spans_, [&](const KeySpan& s) { return s.begin < end && begin < s.end; });
  }

 private:
  std::vector<KeySpan> spans_;
};

}  // namespace gyre
