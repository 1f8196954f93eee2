// Ranges of tokens, which may wrap, and how wide they are.
#pragma once

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "ring/token.h"

namespace gyre {

// A number of positions: the whole ring has 2^64, which does not fit in 64 bits.
using Positions = unsigned __int128;
inline constexpr Positions kAllPositions = Positions{1} << 64;

// The tokens after `begin` up to and including `end`, clockwise. begin == end means the whole ring; the
// functions of this folder write the whole ring as kWholeRing, which starts at token 0.
struct TokenRange {
  Token begin;
  Token end;

  bool whole() const { return begin == end; }
  bool Contains(Token token) const {
    return whole() ||
           token.value - begin.value - 1 < end.value - begin.value;  // modulo 2^64, as the ring wraps
  }
  Positions width() const { return whole() ? kAllPositions : Positions{end.value - begin.value}; }
  bool operator==(const TokenRange&) const = default;
};

inline constexpr TokenRange kWholeRing = {.begin = {std::numeric_limits<uint64_t>::max()},
                                          .end = {std::numeric_limits<uint64_t>::max()}};

// Merges neighbours that are `alike`, also across the wrap-around. Ranges derives from TokenRange.
// REQUIRES: `ranges` is not empty, ordered by `end`, and covers the whole ring without gaps.
template <typename Range, typename Alike>
std::vector<Range> MergeNeighbours(std::vector<Range> ranges, Alike alike) {
  std::vector<Range> merged;
  for (Range& range : ranges) {
    if (!merged.empty() && alike(merged.back(), range)) {
      merged.back().end = range.end;
    } else {
      merged.push_back(std::move(range));
    }
  }
  if (merged.size() > 1 && alike(merged.back(), merged.front())) {
    merged.front().begin = merged.back().begin;
    merged.pop_back();
  }
  if (merged.size() == 1) static_cast<TokenRange&>(merged.front()) = kWholeRing;
  return merged;
}

}  // namespace gyre
