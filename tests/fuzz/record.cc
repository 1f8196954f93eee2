// Records, of peers and of the disk: one encoding each, and what is read of them without decoding is true.
#include <memory>

#include "storage/format/record_codec.h"
#include "tests/fuzz/fuzz.h"

namespace gyre {
namespace {

void Check(const Record& record, const std::string& bytes) {
  assert(record.seen.entries().size() * kActorEntryBytesMin <= bytes.size());
  assert(record.versions.capacity() <= bytes.size());
  assert(record.superseded.capacity() <= bytes.size());
  assert(NewestCounter(bytes) == record.seen.Max());
  assert(CollectibleFrom(bytes) == CollectibleFrom(record));
  for (const auto& [actor, counter] : record.seen.entries()) assert(SeenCounter(bytes, actor) == counter);

  const RecordBytes whole = std::make_shared<const std::string>(bytes);
  if (const uint64_t cut = CollectibleFrom(record); cut != kNeverCollectible) {
    const RecordBytes left = Collected(whole, cut);
    assert(left != whole);
    assert(left == nullptr || CollectibleFrom(*left) > cut);
  }
  for (const ConflictRule rule : {ConflictRule::kSiblings, ConflictRule::kLastWriteWins}) {
    const RecordBytes merged = *MergeBytes(EmptyRecord(), whole, rule);
    assert(*MergeBytes(merged, whole, rule) == merged);
    assert(DecodeRecord(*merged).ok());
  }
}

}  // namespace
}  // namespace gyre

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  const std::string_view input = fuzz::Text(data, size);
  OldestCounter(input);  // of bytes that are not a record, too
  CollectibleFrom(input);
  fuzz::Canonical(input, DecodeRecord, EncodeRecord, Check);
  return 0;
}
