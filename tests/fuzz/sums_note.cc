// Notes of changed Merkle sums in the log of the engine: one encoding each.
#include "storage/sums_codec.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  fuzz::Canonical(fuzz::Text(data, size), DecodeSumsNote, EncodeSumsNote,
                  [](const SumsNote& note, const std::string& bytes) {
                    assert(note.previous < note.number);
                    for (const KeyspaceNote& each : note.keyspaces) {
                      assert(each.deltas.capacity() + each.in_doubt.capacity() <= bytes.size());
                    }
                  });
  return 0;
}
