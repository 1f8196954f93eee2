// The canonical bytes of a record: the same on the wire and on disk, encoded once.
//
// Equal records have equal bytes. Layout in storage/FORMAT.md.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "storage/causal/stable_cut.h"

namespace gyre {

// Encoded once; shared by disk and all peers. nullptr stands for "no record".
using RecordBytes = std::shared_ptr<const std::string>;

constexpr uint8_t kRecordFormat = 1;

std::string EncodeRecord(const Record& record);

// DATA_LOSS when the bytes fail their checksum or are not canonical; UNIMPLEMENTED for a format of a later
// version. Never reads beyond `bytes`, never allocates more than a small multiple of their size, whatever
// they hold.
absl::StatusOr<Record> DecodeRecord(std::string_view bytes);

// Whether both are the same record, or none.
inline bool SameRecord(const RecordBytes& a, const RecordBytes& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

// The record of a row of which nothing was ever seen: what merges with anything to that.
const RecordBytes& EmptyRecord();
bool IsEmptyRecord(const RecordBytes& record);

// The counter that the record's vector has for `actor` (0: none), without reading the rest or checking the
// checksum. 0 also when the bytes are not a record.
uint64_t SeenCounter(std::string_view record, const Actor& actor);

// The highest counter of the record's vector, read like SeenCounter.
uint64_t NewestCounter(std::string_view record);

// The lowest counter of a version, or of a record without any the highest of its vector; read like
// SeenCounter.
uint64_t OldestCounter(std::string_view record);

// CollectibleFrom (storage/causal/stable_cut.h) of an encoded record, without copying values or checking the
// checksum; kNeverCollectible when the bytes are not a record.
uint64_t CollectibleFrom(std::string_view record);

// What Collect leaves of an encoded record under `cut`: `record` itself when there is nothing to collect,
// nullptr when nothing is left. Bytes that cannot be decoded stay as they are: they are for repair, not for
// collection.
RecordBytes Collected(const RecordBytes& record, uint64_t cut);

// Merges two encoded records. Returns `ours` or `theirs` itself (no new bytes) when the merge equals it; an
// absent side (nullptr) is the empty record. DATA_LOSS when a side that is looked at cannot be decoded:
// `ours` is not when there is no `theirs`, nor are equal bytes.
absl::StatusOr<RecordBytes> MergeBytes(const RecordBytes& ours, const RecordBytes& theirs, ConflictRule rule);

// A record, and the stable cut of the node that read it from its disk. Fallbacks, and replicas that fill,
// read under cut 0.
struct CutRecord {
  RecordBytes record;
  uint64_t cut = 0;
};

// As MergeBytes, of records that were read under different cuts: the side with the higher cut covers every
// version at or below it that it does not hold. The result is as good as read under the higher one.
absl::StatusOr<CutRecord> MergeAtCuts(const CutRecord& ours, const CutRecord& theirs, ConflictRule rule);

// A 128-bit hash, as the Merkle tree sums it.
struct RowHash {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const RowHash&) const = default;
  // Sums modulo 2^128: order of additions does not matter, and what was added can be taken away.
  RowHash& operator+=(const RowHash& other);
  RowHash& operator-=(const RowHash& other);
};

// XXH3-128 of the length-prefixed row key and the record bytes.
RowHash HashRow(std::string_view row_key, std::string_view record);

std::string ToString(const RowHash& hash);  // 32 hexadecimal digits

}  // namespace gyre
