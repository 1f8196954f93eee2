// Snapshots of Merkle sums: one encoding each.
#include "storage/sums_codec.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  fuzz::Canonical(fuzz::Text(data, size), DecodeSumsSnapshot, [](const SumsSnapshot& snapshot) {
    return EncodeSumsSnapshot(snapshot.position, *snapshot.tree, LeafSet());
  });
  return 0;
}
