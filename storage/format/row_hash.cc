// The hash of one row, and sums of such hashes.
#define XXH_STATIC_LINKING_ONLY  // for a hash state on the stack
#include <cassert>
#include <cstdio>
#include <xxhash.h>

#include "storage/format/record_codec.h"

namespace gyre {

RowHash& RowHash::operator+=(const RowHash& other) {
  low += other.low;
  high += other.high + (low < other.low ? 1 : 0);
  return *this;
}

RowHash& RowHash::operator-=(const RowHash& other) {
  const uint64_t borrow = low < other.low ? 1 : 0;
  low -= other.low;
  high -= other.high + borrow;
  return *this;
}

RowHash HashRow(std::string_view row_key, std::string_view record) {
  assert(row_key.size() <= UINT32_MAX);
  char length[4];
  for (int i = 0; i < 4; ++i) length[i] = static_cast<char>(row_key.size() >> (24 - 8 * i));
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, length, sizeof length);
  XXH3_128bits_update(&state, row_key.data(), row_key.size());
  XXH3_128bits_update(&state, record.data(), record.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return {.high = hash.high64, .low = hash.low64};
}

std::string ToString(const RowHash& hash) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high),
                static_cast<unsigned long long>(hash.low));
  return text;
}

}  // namespace gyre
