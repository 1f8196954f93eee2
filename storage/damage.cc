// Passing over what cannot be read of a table: where behind it is readable again.
#include "storage/damage.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace gyre {
namespace {

// As much of a key as the search for readable rows tells apart: of a hint, up to its row's token.
constexpr size_t kDigits = 24;

// Halfway between two numbers of kDigits bytes, rounded down.
std::string Middle(const std::string& low, const std::string& high) {
  std::string middle(kDigits, '\0');
  unsigned carry = 0;
  for (size_t i = kDigits; i-- > 0;) {
    const unsigned sum = static_cast<uint8_t>(low[i]) + static_cast<uint8_t>(high[i]) + carry;
    middle[i] = static_cast<char>(sum & 0xff);
    carry = sum >> 8;
  }
  for (size_t i = 0; i < kDigits; ++i) {  // halve it: `carry` is the bit above
    const unsigned digit = carry << 8 | static_cast<uint8_t>(middle[i]);
    middle[i] = static_cast<char>(digit >> 1);
    carry = digit & 1;
  }
  return middle;
}

}  // namespace

// Where the middle cannot be read either, that may be another damaged place, so a few places before it are
// tried too.
std::string BehindDamage(Engine& engine, Table table, const KeyRange& range) {
  assert(!range.end.empty());
  std::string bad = range.begin;
  std::string good = range.end;
  bad.resize(kDigits, '\0');
  good.resize(kDigits, '\0');
  const auto readable = [&](const std::string& from) {
    return from > bad &&
           !absl::IsDataLoss(engine.Scan(table, {from, range.end}, [](auto, auto) { return false; }));
  };
  for (std::string middle = Middle(bad, good); middle > bad; middle = Middle(bad, good)) {
    const std::string quarter = Middle(bad, middle);
    const std::string three_quarters = Middle(quarter, middle);
    const std::string places[] = {Middle(bad, quarter), quarter, Middle(quarter, three_quarters),
                                  three_quarters, Middle(three_quarters, middle)};
    if (readable(middle)) {
      good = middle;
    } else if (const auto* place = std::ranges::find_if(places, readable); place != std::end(places)) {
      good = *place;
    } else {
      bad = middle;
    }
  }
  return good;
}

}  // namespace gyre
