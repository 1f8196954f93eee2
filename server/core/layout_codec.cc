// The bytes of a layout.
#include "server/core/layout_codec.h"

#include <limits>
#include <utility>

namespace gyre {
namespace {

constexpr size_t kMemberBytesMin = 8 + 1 + 1 + 1;                      // id, zone length, weight, token count
constexpr size_t kKeyspaceBytesMin = 1 + 1 + 1 + 2 * (1 + 8) + 1 + 1;  // id, name length, n, r, w, rules, ttl
// The rules of a keyspace, in one byte. One that knows none but the first is written as it always was.
constexpr uint8_t kLastWriteWinsBit = 1;
constexpr uint8_t kStrictBit = 2;

void WriteText(ByteWriter& out, const std::string& text) {
  out.Varint(text.size());
  out.Bytes(text);
}

std::string ReadText(ByteReader& in) { return std::string(in.Bytes(in.Varint())); }

uint32_t Read32(ByteReader& in) {
  const uint64_t value = in.Varint();
  if (value > std::numeric_limits<uint32_t>::max()) in.Fail();
  return static_cast<uint32_t>(value);
}

void WriteMember(ByteWriter& out, const Member& member) {
  out.Fixed64(member.id.value);
  WriteText(out, member.zone);
  out.Varint(member.weight);
  out.Varint(member.tokens.size());
  for (const Token token : member.tokens) out.Fixed64(token.value);
}

Member ReadMember(ByteReader& in) {
  Member member;
  member.id = NodeId{in.Fixed64()};
  member.zone = ReadText(in);
  member.weight = Read32(in);
  const size_t tokens = in.Count(8);
  member.tokens.reserve(tokens);
  for (size_t i = 0; i < tokens; ++i) member.tokens.push_back(Token{in.Fixed64()});
  return member;
}

void WriteReplicaCount(ByteWriter& out, const ReplicaCount& need) {
  out.Byte(static_cast<uint8_t>(need.how));
  out.Fixed64(static_cast<uint64_t>(need.count));
}

ReplicaCount ReadReplicaCount(ByteReader& in) {
  const uint8_t how = in.Byte();
  if (how > static_cast<uint8_t>(ReplicaCount::How::kCount)) in.Fail();
  return {static_cast<ReplicaCount::How>(how), static_cast<int64_t>(in.Fixed64())};
}

void WriteKeyspace(ByteWriter& out, const KeyspaceSpec& keyspace) {
  out.Varint(keyspace.id);
  WriteText(out, keyspace.name);
  out.Varint(static_cast<uint32_t>(keyspace.n));
  WriteReplicaCount(out, keyspace.r);
  WriteReplicaCount(out, keyspace.w);
  out.Byte(static_cast<uint8_t>((keyspace.conflict == ConflictRule::kLastWriteWins ? kLastWriteWinsBit : 0) |
                                (keyspace.strict ? kStrictBit : 0)));
  out.Varint(keyspace.ttl_ms);
}

KeyspaceSpec ReadKeyspace(ByteReader& in) {
  KeyspaceSpec keyspace;
  keyspace.id = Read32(in);
  keyspace.name = ReadText(in);
  keyspace.n = static_cast<int>(Read32(in));
  keyspace.r = ReadReplicaCount(in);
  keyspace.w = ReadReplicaCount(in);
  const uint8_t rules = in.Byte();
  if ((rules & ~(kLastWriteWinsBit | kStrictBit)) != 0) in.Fail();
  keyspace.conflict =
      (rules & kLastWriteWinsBit) != 0 ? ConflictRule::kLastWriteWins : ConflictRule::kSiblings;
  keyspace.strict = (rules & kStrictBit) != 0;
  keyspace.ttl_ms = in.Varint();
  return keyspace;
}

void WriteNodes(ByteWriter& out, const std::vector<NodeId>& nodes) {
  out.Varint(nodes.size());
  for (const NodeId node : nodes) out.Fixed64(node.value);
}

std::vector<NodeId> ReadNodes(ByteReader& in) {
  std::vector<NodeId> nodes;
  for (size_t left = in.Count(8); left > 0 && in.ok(); --left) nodes.push_back(NodeId{in.Fixed64()});
  return nodes;
}

bool SaysOfMovement(const Layout& layout) {
  return layout.fence != 0 || layout.abort || !layout.lost.empty() || !layout.removed.empty();
}

// Layouts of clusters that never moved data end before this, as they always did.
void ReadMovement(ByteReader& in, Layout& layout) {
  layout.fence = in.Varint();
  const uint8_t abort = in.Byte();
  layout.abort = abort == 1;
  layout.lost = ReadNodes(in);
  layout.removed = ReadNodes(in);
  if (abort > 1 || !SaysOfMovement(layout)) in.Fail();
}

}  // namespace

void WriteLayout(ByteWriter& out, const Layout& layout) {
  out.Fixed64(layout.cluster_id);
  out.Varint(layout.epoch);
  out.Fixed64(layout.base_digest);
  out.Varint(layout.members.size());
  for (const Member& member : layout.members) WriteMember(out, member);
  out.Varint(layout.keyspaces.size());
  for (const KeyspaceSpec& keyspace : layout.keyspaces) WriteKeyspace(out, keyspace);
  out.Varint(layout.keyspace_ids_used);
  WriteNodes(out, layout.voters);
  if (!SaysOfMovement(layout)) return;
  out.Varint(layout.fence);
  out.Byte(layout.abort ? 1 : 0);
  WriteNodes(out, layout.lost);
  WriteNodes(out, layout.removed);
}

Layout ReadLayout(ByteReader& in) {
  Layout layout;
  layout.cluster_id = in.Fixed64();
  layout.epoch = in.Varint();
  layout.base_digest = in.Fixed64();
  for (size_t left = in.Count(kMemberBytesMin); left > 0 && in.ok(); --left) {
    layout.members.push_back(ReadMember(in));
  }
  for (size_t left = in.Count(kKeyspaceBytesMin); left > 0 && in.ok(); --left) {
    layout.keyspaces.push_back(ReadKeyspace(in));
  }
  layout.keyspace_ids_used = Read32(in);
  layout.voters = ReadNodes(in);
  if (in.ok() && in.left() > 0) ReadMovement(in, layout);
  if (in.ok() && !CheckLayout(layout).ok()) in.Fail();
  return layout;
}

}  // namespace gyre
