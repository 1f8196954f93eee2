// What the benchmark of the Merkle tree links into gyred in place of HashRow: every row's hash is zero. So no
// sum ever changes: nothing is hashed, noted in the log, added to a leaf or saved. What stays is the list of
// changes that all turn out to be none, some tens of nanoseconds a row.
#include <string_view>

#include "storage/format/record_codec.h"

namespace gyre {

// The name that --wrap of the linker gives it (CMakeLists.txt).
RowHash NoHash(std::string_view row_key, std::string_view record) asm("__wrap_" HASH_ROW_SYMBOL);
RowHash NoHash(std::string_view, std::string_view) { return {}; }

}  // namespace gyre
