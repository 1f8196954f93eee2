// The bytes of what membership persists.
#include "server/core/membership_codec.h"

#include <absl/status/status.h>
#include <algorithm>
#include <limits>
#include <utility>

#include "server/core/layout_codec.h"
#include "server/core/membership_book.h"
#include "server/core/membership_formation.h"
#include "storage/format/bytes.h"

namespace gyre {
namespace {

constexpr uint8_t kFormat = 1;
enum class Kind : uint8_t { kLayout = 1, kPromise, kAcceptor, kNodes, kRound, kOther, kSteps, kAbstention };
constexpr size_t kStepBytes = 8 + 1;                     // node, step
constexpr size_t kNodeBytesMin = 8 + 1 + 1 + 1 + 1 + 1;  // id, three texts, weight, generation

template <typename WriteBody>
std::string Encode(Kind kind, WriteBody write) {
  ByteWriter out(0);
  out.Byte(kFormat);
  out.Byte(static_cast<uint8_t>(kind));
  write(out);
  return out.Finish();
}

// `read` makes its reader fail when the bytes are not what they should be.
template <typename Value, typename ReadBody>
absl::StatusOr<Value> Decode(Kind kind, const std::string& what, std::string_view bytes, ReadBody read) {
  if (!CheckAndStrip(bytes)) return absl::DataLossError(what + " fails its checksum; restore the store");
  ByteReader in(bytes);
  const uint8_t format = in.Byte();
  if (in.ok() && format > kFormat) {
    return absl::UnimplementedError(what + " has format " + std::to_string(format) +
                                    ", which is of a later version; run that version");
  }
  const bool expected = format == kFormat && in.Byte() == static_cast<uint8_t>(kind);
  if (!expected) in.Fail();
  Value value = read(in);
  if (!in.AtEnd()) return absl::DataLossError(what + " is garbled; restore the store");
  return value;
}

void WriteText(ByteWriter& out, const std::string& text) {
  out.Varint(text.size());
  out.Bytes(text);
}

std::string ReadText(ByteReader& in) { return std::string(in.Bytes(in.Varint())); }

void WriteNodes(ByteWriter& out, const std::vector<NodeInfoValue>& nodes) {
  out.Varint(nodes.size());
  for (const NodeInfoValue& node : nodes) {
    out.Fixed64(node.id.value);
    WriteText(out, node.address);
    WriteText(out, node.peer_address);
    WriteText(out, node.zone);
    out.Varint(node.weight);
    out.Varint(node.generation);
  }
}

NodeInfoValue ReadNode(ByteReader& in) {
  NodeInfoValue node;
  node.id = NodeId{in.Fixed64()};
  node.address = ReadText(in);
  node.peer_address = ReadText(in);
  node.zone = ReadText(in);
  const uint64_t weight = in.Varint();
  if (weight > std::numeric_limits<uint32_t>::max()) in.Fail();
  node.weight = static_cast<uint32_t>(weight);
  node.generation = in.Varint();
  if (!IsUsable(node)) in.Fail();
  return node;
}

std::vector<NodeInfoValue> ReadNodes(ByteReader& in) {
  std::vector<NodeInfoValue> nodes;
  const size_t count = in.Count(kNodeBytesMin);
  if (count > AddressBook::kEntriesMax) in.Fail();
  for (size_t i = 0; i < count && in.ok(); ++i) {
    NodeInfoValue node = ReadNode(in);
    if (!nodes.empty() && nodes.back().id >= node.id) in.Fail();
    nodes.push_back(std::move(node));
  }
  return nodes;
}

void WriteBallot(ByteWriter& out, const Ballot& ballot) {
  out.Varint(ballot.round);
  out.Fixed64(ballot.node.value);
}

Ballot ReadBallot(ByteReader& in) {
  Ballot ballot;
  ballot.round = in.Varint();
  ballot.node = NodeId{in.Fixed64()};
  return ballot;
}

AcceptorState ReadAcceptor(ByteReader& in) {
  AcceptorState state;
  state.base.epoch = in.Varint();
  state.base.digest = in.Fixed64();
  state.promised = ReadBallot(in);
  state.accepted_ballot = ReadBallot(in);
  const bool none_accepted = state.accepted_ballot == Ballot{};
  if (state.accepted_ballot > state.promised || (state.accepted_ballot.round == 0 && !none_accepted))
    in.Fail();
  if (!none_accepted) state.accepted = ReadLayout(in);
  return state;
}

}  // namespace

std::string EncodeLayout(const Layout& layout) {
  return Encode(Kind::kLayout, [&](ByteWriter& out) { WriteLayout(out, layout); });
}

absl::StatusOr<Layout> DecodeLayout(std::string_view bytes) {
  return Decode<Layout>(Kind::kLayout, "the stored layout", bytes, ReadLayout);
}

std::string EncodePromise(const control::FormationPromise& promise) {
  return Encode(Kind::kPromise, [&](ByteWriter& out) { WriteNodes(out, promise.nodes); });
}

absl::StatusOr<control::FormationPromise> DecodePromise(std::string_view bytes) {
  return Decode<control::FormationPromise>(
      Kind::kPromise, "the stored promise to form a cluster", bytes, [](ByteReader& in) {
        control::FormationPromise promise;
        promise.nodes = ReadNodes(in);
        promise.bootstrap_expect = static_cast<int>(promise.nodes.size());
        if (!IsWellFormed(promise)) in.Fail();
        return promise;
      });
}

std::string EncodeAcceptor(const AcceptorState& state) {
  return Encode(Kind::kAcceptor, [&](ByteWriter& out) {
    out.Varint(state.base.epoch);
    out.Fixed64(state.base.digest);
    WriteBallot(out, state.promised);
    WriteBallot(out, state.accepted_ballot);
    if (state.accepted) WriteLayout(out, *state.accepted);
  });
}

absl::StatusOr<AcceptorState> DecodeAcceptor(std::string_view bytes) {
  return Decode<AcceptorState>(Kind::kAcceptor, "the stored vote about the next layout", bytes, ReadAcceptor);
}

std::string EncodeNodes(const std::vector<NodeInfoValue>& nodes) {
  return Encode(Kind::kNodes, [&](ByteWriter& out) { WriteNodes(out, nodes); });
}

absl::StatusOr<std::vector<NodeInfoValue>> DecodeNodes(std::string_view bytes) {
  return Decode<std::vector<NodeInfoValue>>(Kind::kNodes, "the stored list of nodes", bytes, ReadNodes);
}

std::string EncodeOther(const StoredOther& other) {
  return Encode(Kind::kOther, [&](ByteWriter& out) {
    out.Varint(other.epoch);
    if (other.other) WriteLayout(out, *other.other);
  });
}

absl::StatusOr<StoredOther> DecodeOther(std::string_view bytes) {
  return Decode<StoredOther>(Kind::kOther, "the stored layout of before", bytes, [](ByteReader& in) {
    StoredOther other = {.epoch = in.Varint(), .other = std::nullopt};
    if (in.ok() && in.left() > 0) other.other = ReadLayout(in);
    if (other.other && other.other->epoch + 1 != other.epoch) in.Fail();
    return other;
  });
}

std::string EncodeSteps(const StoredSteps& steps) {
  return Encode(Kind::kSteps, [&](ByteWriter& out) {
    out.Varint(steps.epoch);
    out.Varint(steps.steps.size());
    for (const control::MemberStep& each : steps.steps) {
      out.Fixed64(each.node.value);
      out.Byte(static_cast<uint8_t>(each.step));
    }
  });
}

absl::StatusOr<StoredSteps> DecodeSteps(std::string_view bytes) {
  return Decode<StoredSteps>(Kind::kSteps, "the stored steps of a movement", bytes, [](ByteReader& in) {
    StoredSteps steps = {.epoch = in.Varint(), .steps = {}};
    const size_t count = in.Count(kStepBytes);
    if (count > control::kStepsMax) in.Fail();
    for (size_t i = 0; i < count && in.ok(); ++i) {
      const NodeId node{in.Fixed64()};
      const uint8_t step = in.Byte();
      if (!node || (i > 0 && steps.steps.back().node >= node)) in.Fail();
      if (step > static_cast<uint8_t>(MoveStep::kDone)) in.Fail();
      steps.steps.push_back({node, static_cast<MoveStep>(step)});
    }
    return steps;
  });
}

std::string EncodeAbstention(const Abstention& abstention) {
  return Encode(Kind::kAbstention, [&](ByteWriter& out) {
    out.Varint(abstention.through);
    out.Byte(abstention.known ? 1 : 0);
  });
}

absl::StatusOr<Abstention> DecodeAbstention(std::string_view bytes) {
  return Decode<Abstention>(Kind::kAbstention, "what was stored about votes", bytes, [](ByteReader& in) {
    Abstention abstention = {.through = in.Varint()};
    const uint8_t known = in.Byte();
    abstention.known = known == 1;
    if (known > 1) in.Fail();
    return abstention;
  });
}

std::string EncodeRound(uint64_t round) {
  return Encode(Kind::kRound, [&](ByteWriter& out) { out.Varint(round); });
}

absl::StatusOr<uint64_t> DecodeRound(std::string_view bytes) {
  return Decode<uint64_t>(Kind::kRound, "the stored ballot number", bytes,
                          [](ByteReader& in) { return in.Varint(); });
}

}  // namespace gyre
