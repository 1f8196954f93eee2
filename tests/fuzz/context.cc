// Causal contexts that clients bring back: one encoding each, and good for one key of one keyspace.
#include "storage/format/context_codec.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  fuzz::Canonical(
      fuzz::Text(data, size), [](std::string_view bytes) { return DecodeContext(bytes, 1, "cart"); },
      [](const CausalContext& context) { return EncodeContext(context, 1, "cart"); },
      [](const CausalContext& context, const std::string& bytes) {
        assert(bytes.size() <= kContextBytesMax);
        assert(context.seen.Max() <= kCounterMax);
        assert(!DecodeContext(bytes, 2, "cart").ok());
        assert(!DecodeContext(bytes, 1, "card").ok());
      });
  return 0;
}
