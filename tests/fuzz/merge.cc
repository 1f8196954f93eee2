// Two records of a peer that may say anything: they merge in either order, under either rule, at any cuts.
#include <memory>

#include "storage/format/record_codec.h"
#include "tests/fuzz/fuzz.h"

namespace gyre {
namespace {

// What a merge makes is a record, to which neither side brings anything more.
void Check(const CutRecord& a, const CutRecord& b, ConflictRule rule) {
  const absl::StatusOr<CutRecord> merged = MergeAtCuts(a, b, rule);
  if (!DecodeRecord(*a.record).ok() || !DecodeRecord(*b.record).ok()) return;
  assert(DecodeRecord(*merged->record).ok());
  assert(merged->cut == std::max(a.cut, b.cut));
  for (const CutRecord& side : {a, b}) {
    assert(SameRecord(MergeAtCuts(*merged, side, rule)->record, merged->record));
  }
  const RecordBytes left = Collected(merged->record, merged->cut);
  assert(SameRecord(left, Collected(left, merged->cut)));
}

}  // namespace
}  // namespace gyre

// The input: where the first record ends, and its cut as a power of two; then the records.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  if (size < 2) return 0;
  const std::string_view rest = fuzz::Text(data + 2, size - 2);
  const size_t first = std::min<size_t>(data[0], rest.size());
  const CutRecord a = {std::make_shared<const std::string>(fuzz::Sealed(rest.substr(0, first))),
                       uint64_t{1} << (data[1] % 64)};
  const CutRecord b = {std::make_shared<const std::string>(fuzz::Sealed(rest.substr(first))), 1 << 10};
  for (const ConflictRule rule : {ConflictRule::kSiblings, ConflictRule::kLastWriteWins}) {
    Check(a, b, rule);
    Check(b, a, rule);
    Check({a.record, b.cut}, b, rule);
  }
  return 0;
}
