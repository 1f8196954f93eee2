// Records as canonical bytes: one record, one encoding; anything else is refused.
#include "storage/format/record_codec.h"

#include <absl/status/status.h>
#include <algorithm>
#include <cassert>
#include <utility>

#include "storage/format/bytes.h"

namespace gyre {
namespace {

// What a version holds beside its dot and value.
constexpr uint8_t kHasWriteId = 1;
constexpr uint8_t kRetried = 2;
constexpr uint8_t kExpires = 4;
constexpr uint8_t kFlagsAll = kHasWriteId | kRetried | kExpires;

constexpr size_t kVersionBytesMin = 1 + 8 + 1 + 1;  // actor index, counter, flags, value length
constexpr size_t kSupersededBytesMin = 16 + 1 + 8;  // write id, actor index, counter

// Dots name their actor by its place in the vector, which covers them all.
size_t ActorIndex(const VersionVector& seen, const Actor& actor) {
  const auto& entries = seen.entries();
  const auto it =
      std::lower_bound(entries.begin(), entries.end(), actor,
                       [](const VersionVector::Entry& entry, const Actor& a) { return entry.actor < a; });
  assert(it != entries.end());
  assert(it->actor == actor);
  return static_cast<size_t>(it - entries.begin());
}

size_t DotBytes(const VersionVector& seen, const Dot& dot) {
  return VarintBytes(ActorIndex(seen, dot.actor)) + 8;
}

void WriteDot(ByteWriter& out, const VersionVector& seen, const Dot& dot) {
  assert(seen.Covers(dot));
  out.Varint(ActorIndex(seen, dot.actor));
  out.Fixed64(dot.counter);
}

void WriteId128(ByteWriter& out, const WriteId& id) {
  out.Fixed64(id.high);
  out.Fixed64(id.low);
}

uint8_t FlagsOf(const Version& version) {
  return static_cast<uint8_t>((version.write_id.empty() ? 0 : kHasWriteId) |
                              (version.retried ? kRetried : 0) | (version.expires_ms == 0 ? 0 : kExpires));
}

size_t EncodedBytes(const Record& record) {
  size_t bytes = 1 + VectorBytes(record.seen);
  bytes += VarintBytes(record.versions.size());
  for (const Version& version : record.versions) {
    bytes += DotBytes(record.seen, version.dot) + 1;
    bytes += (version.write_id.empty() ? 0 : 16) + (version.expires_ms == 0 ? 0 : 8);
    bytes += VarintBytes(version.value.size()) + version.value.size();
  }
  bytes += VarintBytes(record.superseded.size());
  for (const SupersededRetry& retry : record.superseded) bytes += 16 + DotBytes(record.seen, retry.by);
  return bytes + kChecksumBytes;
}

Dot ReadDot(ByteReader& in, const VersionVector& seen) {
  const uint64_t index = in.Varint();
  const uint64_t counter = in.Counter();
  if (!in.ok() || index >= seen.entries().size() || counter > seen.entries()[index].counter) {
    in.Fail();
    return {};
  }
  return {seen.entries()[index].actor, counter};
}

// An empty id is written as none.
WriteId ReadId128(ByteReader& in) {
  WriteId id;
  id.high = in.Fixed64();
  id.low = in.Fixed64();
  if (id.empty()) in.Fail();
  return id;
}

Version ReadVersion(ByteReader& in, const VersionVector& seen) {
  Version version;
  version.dot = ReadDot(in, seen);
  const uint8_t flags = in.Byte();
  if ((flags & ~kFlagsAll) != 0) in.Fail();
  version.retried = (flags & kRetried) != 0;
  if ((flags & kHasWriteId) != 0) {
    version.write_id = ReadId128(in);
  } else if (version.retried) {
    in.Fail();
  }
  if ((flags & kExpires) != 0) {
    version.expires_ms = in.Fixed64();
    if (version.expires_ms == 0) in.Fail();
  }
  version.value = in.Bytes(in.Varint());
  return version;
}

bool AnyVersionSuperseded(const Record& record) {
  if (record.superseded.empty()) return false;
  return std::any_of(record.versions.begin(), record.versions.end(), [&](const Version& version) {
    const auto it =
        std::lower_bound(record.superseded.begin(), record.superseded.end(), version.write_id,
                         [](const SupersededRetry& retry, const WriteId& id) { return retry.write_id < id; });
    return it != record.superseded.end() && it->write_id == version.write_id;
  });
}

bool ReadBody(ByteReader& in, Record& record) {
  record.seen = in.Vector();
  const size_t versions = in.Count(kVersionBytesMin);
  record.versions.reserve(versions);
  for (size_t i = 0; i < versions && in.ok(); ++i) {
    Version version = ReadVersion(in, record.seen);
    if (i > 0 && !(record.versions.back().dot < version.dot)) in.Fail();
    record.versions.push_back(std::move(version));
  }
  const size_t superseded = in.Count(kSupersededBytesMin);
  record.superseded.reserve(superseded);
  for (size_t i = 0; i < superseded && in.ok(); ++i) {
    SupersededRetry retry;
    retry.write_id = ReadId128(in);
    retry.by = ReadDot(in, record.seen);
    if (i > 0 && !(record.superseded.back().write_id < retry.write_id)) in.Fail();
    record.superseded.push_back(retry);
  }
  return in.AtEnd() && !AnyVersionSuperseded(record);
}

}  // namespace

std::string EncodeRecord(const Record& record) {
  const size_t bytes = EncodedBytes(record);
  ByteWriter out(bytes);
  out.Byte(kRecordFormat);
  out.Vector(record.seen);
  out.Varint(record.versions.size());
  for (const Version& version : record.versions) {
    assert(!version.retried || !version.write_id.empty());
    WriteDot(out, record.seen, version.dot);
    out.Byte(FlagsOf(version));
    if (!version.write_id.empty()) WriteId128(out, version.write_id);
    if (version.expires_ms != 0) out.Fixed64(version.expires_ms);
    out.Varint(version.value.size());
    out.Bytes(version.value);
  }
  out.Varint(record.superseded.size());
  for (const SupersededRetry& retry : record.superseded) {
    WriteId128(out, retry.write_id);
    WriteDot(out, record.seen, retry.by);
  }
  std::string encoded = out.Finish();
  assert(encoded.size() == bytes);
  return encoded;
}

absl::StatusOr<Record> DecodeRecord(std::string_view bytes) {
  if (!CheckAndStrip(bytes) || bytes.empty()) {
    return absl::DataLossError("The record fails its checksum; it must be repaired from another replica.");
  }
  ByteReader in(bytes);
  const uint8_t format = in.Byte();
  if (format > kRecordFormat) {
    return absl::UnimplementedError("The record has format " + std::to_string(format) +
                                    ", which a later version wrote; this version reads format " +
                                    std::to_string(kRecordFormat) + " only and must be upgraded.");
  }
  Record record;
  if (format != kRecordFormat || !ReadBody(in, record)) {
    return absl::DataLossError(
        "The record is not in canonical form; it must be repaired from another replica.");
  }
  return record;
}

const RecordBytes& EmptyRecord() {
  static const auto* const empty = new RecordBytes(std::make_shared<const std::string>(EncodeRecord({})));
  return *empty;
}

bool IsEmptyRecord(const RecordBytes& record) { return record && *record == *EmptyRecord(); }

uint64_t SeenCounter(std::string_view record, const Actor& actor) {
  ByteReader in(record);
  if (in.Byte() != kRecordFormat) return 0;
  const VersionVector seen = in.Vector();
  return in.ok() ? seen.CounterOf(actor) : 0;
}

uint64_t NewestCounter(std::string_view record) {
  ByteReader in(record);
  if (in.Byte() != kRecordFormat) return 0;
  const VersionVector seen = in.Vector();
  return in.ok() ? seen.Max() : 0;
}

uint64_t OldestCounter(std::string_view record) {
  ByteReader in(record);
  if (in.Byte() != kRecordFormat) return 0;
  const VersionVector seen = in.Vector();
  if (in.Count(kVersionBytesMin) == 0) return in.ok() ? seen.Max() : 0;
  in.Varint();  // versions ascend by counter
  const uint64_t counter = in.Counter();
  return in.ok() ? counter : 0;
}

uint64_t CollectibleFrom(std::string_view record) {
  ByteReader in(record);
  if (in.Byte() != kRecordFormat) return kNeverCollectible;
  const VersionVector seen = in.Vector();
  const size_t versions = in.Count(kVersionBytesMin);
  uint64_t from = versions == 0 && !seen.empty() ? seen.Max() : kNeverCollectible;
  for (size_t i = 0; i < versions && in.ok(); ++i) {
    in.Varint();
    const uint64_t counter = in.Counter();
    const uint8_t flags = in.Byte();
    if ((flags & kHasWriteId) != 0) in.Bytes(16);
    if ((flags & kExpires) != 0) from = std::min(from, ExpiryCut(counter, in.Fixed64()));
    in.Bytes(in.Varint());
  }
  const size_t superseded = in.Count(kSupersededBytesMin);
  for (size_t i = 0; i < superseded && in.ok(); ++i) {
    in.Bytes(16);
    in.Varint();
    from = std::min(from, in.Counter());
  }
  return in.ok() ? from : kNeverCollectible;
}

RecordBytes Collected(const RecordBytes& record, uint64_t cut) {
  if (record == nullptr || CollectibleFrom(*record) > cut) return record;
  absl::StatusOr<Record> decoded = DecodeRecord(*record);
  if (!decoded.ok() || !Collect(*decoded, cut)) return record;
  return decoded->empty() ? nullptr : std::make_shared<const std::string>(EncodeRecord(*decoded));
}

absl::StatusOr<RecordBytes> MergeBytes(const RecordBytes& ours, const RecordBytes& theirs,
                                       ConflictRule rule) {
  if (!theirs || SameRecord(ours, theirs)) return ours;
  const absl::StatusOr<Record> other = DecodeRecord(*theirs);
  if (!other.ok()) return other.status();
  if (!ours) return theirs;
  const absl::StatusOr<Record> mine = DecodeRecord(*ours);
  if (!mine.ok()) return mine.status();
  const Record merged = Merge(*mine, *other, rule);
  if (merged == *mine) return ours;
  if (merged == *other) return theirs;
  return std::make_shared<const std::string>(EncodeRecord(merged));
}

absl::StatusOr<CutRecord> MergeAtCuts(const CutRecord& ours, const CutRecord& theirs, ConflictRule rule) {
  if (ours.cut == theirs.cut || SameRecord(ours.record, theirs.record)) {
    absl::StatusOr<RecordBytes> merged = MergeBytes(ours.record, theirs.record, rule);
    if (!merged.ok()) return merged.status();
    return CutRecord{*std::move(merged), std::max(ours.cut, theirs.cut)};
  }
  const CutRecord& low = ours.cut < theirs.cut ? ours : theirs;
  const CutRecord& high = ours.cut < theirs.cut ? theirs : ours;
  if (low.record == nullptr) return high;
  absl::StatusOr<Record> covered = DecodeRecord(*low.record);
  if (!covered.ok()) return covered.status();
  const absl::StatusOr<Record> holds = high.record ? DecodeRecord(*high.record) : Record{};
  if (!holds.ok()) return holds.status();
  const size_t versions = covered->versions.size();
  DropBelowCut(*covered, *holds, high.cut);
  const Record merged = Merge(*covered, *holds, rule);
  if (merged == *holds) return high;
  if (merged == *covered && covered->versions.size() == versions) return CutRecord{low.record, high.cut};
  return CutRecord{std::make_shared<const std::string>(EncodeRecord(merged)), high.cut};
}

}  // namespace gyre
