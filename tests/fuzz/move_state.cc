// What a node remembers of data that moves: one encoding.
#include "server/core/movement_task.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  fuzz::Canonical(fuzz::Text(data, size), DecodeMoveState, EncodeMoveState,
                  [](const MoveState& state, const std::string& bytes) {
                    assert(state.progress.size() <= bytes.size());
                    for (const MoveProgress& each : state.progress)
                      assert(each.after.size() <= kRowKeyBytesMax);
                  });
  return 0;
}
