// How many rows there are of something, and how much they weigh.
#pragma once

#include <cstdint>

namespace gyre {

struct RowTotals {
  uint64_t rows = 0;   // tombstones included
  uint64_t bytes = 0;  // of row keys and records, as they travel; not what they take on disk
  bool operator==(const RowTotals&) const = default;
};

}  // namespace gyre
