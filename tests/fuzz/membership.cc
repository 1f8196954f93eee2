// All that membership persists: one encoding each, and layouts that keep their rules.
#include "server/core/membership_codec.h"
#include "tests/fuzz/fuzz.h"

namespace gyre {
namespace {

void CheckOne(const Layout& layout, const std::string& bytes) {
  assert(CheckLayout(layout).ok());
  for (const Member& member : layout.members) assert(member.tokens.size() <= bytes.size() / 8);
  const uint64_t digest = DigestOf(layout);
  if (const auto view = MakeView(layout); view.ok()) assert((*view)->digest == digest);
}

}  // namespace
}  // namespace gyre

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  const std::string_view input = fuzz::Text(data, size);
  fuzz::Canonical(input, DecodeLayout, EncodeLayout, CheckOne);
  fuzz::Canonical(input, DecodePromise, EncodePromise);
  fuzz::Canonical(input, DecodeAcceptor, EncodeAcceptor);
  fuzz::Canonical(input, DecodeNodes, EncodeNodes);
  fuzz::Canonical(input, DecodeOther, EncodeOther);
  fuzz::Canonical(input, DecodeSteps, EncodeSteps);
  fuzz::Canonical(input, DecodeAbstention, EncodeAbstention);
  fuzz::Canonical(input, DecodeRound, EncodeRound);
  return 0;
}
