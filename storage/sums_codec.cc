// Encoding and strict decoding of snapshots and notes.
#include "storage/sums_codec.h"

#include <cassert>
#include <utility>

#include "storage/format/bytes.h"

namespace gyre {
namespace {

constexpr uint8_t kNoteFormat = 1;
constexpr uint8_t kSnapshotFormat = 1;
constexpr size_t kGapBytesMax = 3;
constexpr size_t kDeltaBytesMin = 1 + 16;
constexpr size_t kDeltaBytesMax = kGapBytesMax + 16;

// Leaves rise, so each is written as its distance from the one before it (the first from -1): mostly one
// byte.
class LeafWriter {
 public:
  void Leaf(ByteWriter& out, uint32_t leaf) {
    assert(int64_t{leaf} > last_);
    out.Varint(static_cast<uint64_t>(leaf - last_));
    last_ = leaf;
  }
  void Sum(ByteWriter& out, const KeyspaceNote::Delta& delta) {
    Leaf(out, delta.leaf);
    out.Fixed64(delta.sum.high);
    out.Fixed64(delta.sum.low);
  }

 private:
  int64_t last_ = -1;
};

class LeafReader {
 public:
  // 0 after a failed read.
  uint16_t Leaf(ByteReader& in) {
    const uint64_t gap = in.Varint();
    if (gap == 0 || gap > kMerkleLeaves || last_ + static_cast<int64_t>(gap) >= kMerkleLeaves) in.Fail();
    if (!in.ok()) return 0;
    last_ += static_cast<int64_t>(gap);
    return static_cast<uint16_t>(last_);
  }
  // A sum of zero is not canonical: it is left out instead.
  KeyspaceNote::Delta Sum(ByteReader& in) {
    KeyspaceNote::Delta delta{.leaf = Leaf(in), .sum = {}};
    delta.sum.high = in.Fixed64();
    delta.sum.low = in.Fixed64();
    if (delta.sum == RowHash{}) in.Fail();
    return delta;
  }

 private:
  int64_t last_ = -1;
};

absl::Status Garbled(const char* what, const char* why) {
  return absl::DataLossError(std::string(what) + " " + why +
                             "; recount the leaves it is about from their rows");
}

// OK when `bytes` carry their checksum and start with `format`, both of which are taken off.
absl::Status Unwrap(const char* what, uint8_t format, std::string_view& bytes) {
  if (!CheckAndStrip(bytes) || bytes.empty()) return Garbled(what, "fails its checksum");
  const uint8_t found = static_cast<uint8_t>(bytes[0]);
  bytes.remove_prefix(1);
  if (found > format) {
    return absl::UnimplementedError(std::string(what) + " has format " + std::to_string(found) +
                                    ", which a later version of this program wrote; run that version");
  }
  if (found != format) return Garbled(what, "has no valid format");
  return absl::OkStatus();
}

KeyspaceNote ReadKeyspaceNote(ByteReader& in) {
  KeyspaceNote note;
  note.keyspace = in.Fixed32();
  note.deltas.resize(in.Count(kDeltaBytesMin));
  LeafReader deltas;
  for (KeyspaceNote::Delta& delta : note.deltas) delta = deltas.Sum(in);
  note.in_doubt.resize(in.Count(1));
  LeafReader in_doubt;
  for (uint16_t& leaf : note.in_doubt) leaf = in_doubt.Leaf(in);
  if (note.deltas.empty() && note.in_doubt.empty()) in.Fail();
  return note;
}

}  // namespace

std::string EncodeSumsNote(const SumsNote& note) {
  size_t bytes = 1 + 8 + 8 + kChecksumBytes;
  for (const KeyspaceNote& each : note.keyspaces) {
    bytes += 4 + 2 * kGapBytesMax + each.deltas.size() * kDeltaBytesMax + each.in_doubt.size() * kGapBytesMax;
  }
  ByteWriter out(bytes);
  out.Byte(kNoteFormat);
  out.Fixed64(note.number);
  out.Fixed64(note.previous);
  for (const KeyspaceNote& each : note.keyspaces) {
    out.Fixed32(each.keyspace);
    out.Varint(each.deltas.size());
    LeafWriter deltas;
    for (const KeyspaceNote::Delta& delta : each.deltas) deltas.Sum(out, delta);
    out.Varint(each.in_doubt.size());
    LeafWriter in_doubt;
    for (const uint16_t leaf : each.in_doubt) in_doubt.Leaf(out, leaf);
  }
  return out.Finish();
}

absl::StatusOr<SumsNote> DecodeSumsNote(std::string_view bytes) {
  constexpr char kWhat[] = "a note of changed Merkle sums";
  if (absl::Status status = Unwrap(kWhat, kNoteFormat, bytes); !status.ok()) return status;
  ByteReader in(bytes);
  SumsNote note;
  note.number = in.Fixed64();
  note.previous = in.Fixed64();
  if (note.previous >= note.number) in.Fail();
  while (in.ok() && !in.AtEnd()) {
    KeyspaceNote next = ReadKeyspaceNote(in);
    if (!note.keyspaces.empty() && next.keyspace <= note.keyspaces.back().keyspace) in.Fail();
    note.keyspaces.push_back(std::move(next));
  }
  if (!in.ok()) return Garbled(kWhat, "is not canonical");
  return note;
}

std::string EncodeSumsSnapshot(const SumsPosition& position, const MerkleTree& tree, const LeafSet& suspect) {
  std::vector<uint16_t> in_doubt;
  std::vector<KeyspaceNote::Delta> sums;
  for (uint32_t leaf = 0; leaf < kMerkleLeaves; ++leaf) {
    const std::optional<RowHash> sum = tree.SumOfNode(MerkleTree::kLevels - 1, leaf);
    if (!sum || suspect.Contains(leaf)) {
      in_doubt.push_back(static_cast<uint16_t>(leaf));
    } else if (*sum != RowHash{}) {
      sums.push_back({.leaf = static_cast<uint16_t>(leaf), .sum = *sum});
    }
  }
  ByteWriter out(1 + 8 + 8 + 2 * kGapBytesMax + in_doubt.size() * kGapBytesMax +
                 sums.size() * kDeltaBytesMax + kChecksumBytes);
  out.Byte(kSnapshotFormat);
  out.Fixed64(position.sequence);
  out.Fixed64(position.number);
  out.Varint(in_doubt.size());
  LeafWriter doubts;
  for (const uint16_t leaf : in_doubt) doubts.Leaf(out, leaf);
  out.Varint(sums.size());
  LeafWriter leaves;
  for (const KeyspaceNote::Delta& sum : sums) leaves.Sum(out, sum);
  return out.Finish();
}

absl::StatusOr<SumsSnapshot> DecodeSumsSnapshot(std::string_view bytes) {
  constexpr char kWhat[] = "a snapshot of Merkle sums";
  if (absl::Status status = Unwrap(kWhat, kSnapshotFormat, bytes); !status.ok()) return status;
  ByteReader in(bytes);
  SumsSnapshot snapshot;
  snapshot.position.sequence = in.Fixed64();
  snapshot.position.number = in.Fixed64();
  snapshot.tree = std::make_unique<MerkleTree>();
  const size_t in_doubt = in.Count(1);
  LeafReader doubts;
  for (size_t i = 0; in.ok() && i < in_doubt; ++i) snapshot.tree->Doubt(doubts.Leaf(in));
  const size_t sums = in.Count(kDeltaBytesMin);
  LeafReader leaves;
  for (size_t i = 0; in.ok() && i < sums; ++i) {
    const KeyspaceNote::Delta sum = leaves.Sum(in);
    if (snapshot.tree->in_doubt().Contains(sum.leaf)) in.Fail();
    snapshot.tree->Add(sum.leaf, sum.sum);
  }
  if (!in.AtEnd()) return Garbled(kWhat, "is not canonical");
  return snapshot;
}

}  // namespace gyre
