// A record: everything one replica knows about one key, and how two of them merge.
//
// Pure values: no clock, no I/O. Merge is commutative, associative and idempotent, and equal records have
// equal canonical bytes (storage/format/record_codec.h). Replicas exchange whole records, never a lone
// version: a vector with gaps would break associativity.
// Source: the optimised observed-remove set (Bieniusa et al., 2012) over dots (Preguica et al., 2012).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/causal/dot.h"

namespace gyre {

// Made at random by the client for one put, the same on every retry of it.
struct WriteId {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const WriteId&) const = default;
  bool empty() const { return high == 0 && low == 0; }
};

// One value that a read may return.
struct Version {
  Dot dot;
  WriteId write_id;         // empty when the client gave none
  bool retried = false;     // written by a marked retry: its first attempt may still turn up elsewhere
  uint64_t expires_ms = 0;  // milliseconds since 1970 from which it reads as absent; 0 = never
  std::string value;
  bool operator==(const Version&) const = default;
};

// Remembers that the value of a retried put was superseded, so that the lost first attempt of it stays dead.
// Never present under kLastWriteWins: there the highest dot wins whoever wrote it, and to drop a winner would
// leave nothing.
struct SupersededRetry {
  WriteId write_id;
  Dot by;  // the last write known to supersede it: forgotten when the stable cut passes this
  bool operator==(const SupersededRetry&) const = default;
};

struct Record {
  VersionVector seen;
  std::vector<Version> versions;  // sorted by dot; all covered by `seen`
  // Sorted by write id, each id once and in no version; `by` is covered by `seen`.
  std::vector<SupersededRetry> superseded;

  bool empty() const { return seen.empty(); }  // nothing was ever seen
  bool tombstone() const { return versions.empty() && !seen.empty(); }
  bool operator==(const Record&) const = default;
};

// How a keyspace treats concurrent writes.
enum class ConflictRule : uint8_t {
  kSiblings = 0,       // keep every version that no other supersedes
  kLastWriteWins = 1,  // keep only what has the highest dot
};

// What a writer has seen. `seen` claims everything it covers; `own` is one exact write beyond that: the
// writer's own last put, when that put left siblings that the writer has not read.
struct CausalContext {
  VersionVector seen;
  bool has_own = false;
  Dot own;
  bool Covers(const Dot& dot) const { return seen.Covers(dot) || (has_own && dot == own); }
  bool operator==(const CausalContext&) const = default;
};

// Keeps a version that both hold, or that one holds and the other's vector does not cover; joins the vectors;
// drops versions whose write id was superseded (a retried version that the other's vector covers is the news
// of that: its own dot then stands for what superseded it). Under kLastWriteWins only the version with the
// highest dot of the joined vectors survives; if that dot is a delete's, none does.
Record Merge(const Record& a, const Record& b, ConflictRule rule = ConflictRule::kSiblings);

// Adds `version` to `record`, dropping what `context` covers; with context == nullptr drops everything that
// the record holds (a put without a context overwrites). A dropped version that was `retried` leaves its id
// in `superseded`, and with it go all its twins; a version whose id was superseded before is not added, only
// its dot. (So who holds a version with the id of a put answers with it, and does not put it again.)
// A put that is itself a marked retry must be sent with a context, possibly empty, since it supersedes
// nothing, and has a write id.
// REQUIRES: version.dot.counter is above every counter in record.seen and context->seen; context->own, if
// present, is covered by record.seen.
void ApplyPut(Record& record, Version version, const CausalContext* context,
              ConflictRule rule = ConflictRule::kSiblings);

// Like ApplyPut, but the dot goes to the vector only: a record without versions is a tombstone, as young as
// its delete.
void ApplyDelete(Record& record, const Dot& dot, const CausalContext& context,
                 ConflictRule rule = ConflictRule::kSiblings);

// What a writer may claim to have seen after its write `dot` made `record`: everything, if nothing else is
// left in the record; else what it had seen before and its own dot.
CausalContext ContextAfterWrite(const Record& record, const Dot& dot, const CausalContext* before);

// What a read at `now_ms` (milliseconds since 1970) shows: versions that have not expired, by dot, and of
// those with the same non-empty write id only the lowest dot. The pointers live as long as `record` is
// unchanged.
std::vector<const Version*> VisibleVersions(const Record& record, uint64_t now_ms);

}  // namespace gyre
