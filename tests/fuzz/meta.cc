// The small facts that a node keeps beside its rows: one encoding each.
#include "storage/format/meta_codec.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  const std::string_view input = fuzz::Text(data, size);
  fuzz::Canonical(input, DecodeActorState, EncodeActorState);
  fuzz::Canonical(input, DecodeCutMarks, EncodeCutMarks);
  return 0;
}
