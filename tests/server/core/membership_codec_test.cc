// What membership persists: round trips, and refusal of everything else.
#include "server/core/membership_codec.h"

#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "storage/format/bytes.h"

namespace gyre {
namespace {

NodeInfoValue Info(uint64_t id, std::string zone) {
  NodeInfoValue info;
  info.id = NodeId{id};
  info.address = "h" + std::to_string(id) + ":1";
  info.peer_address = "h" + std::to_string(id) + ":2";
  info.zone = std::move(zone);
  info.weight = UINT32_MAX;
  info.generation = 1'700'000'000'000;
  return info;
}

Layout Small() {
  Layout layout = FirstLayout({{NodeId{1}, "z", 0}, {NodeId{UINT64_MAX}, "", 0}});
  layout.members[0].tokens = {Token{3}, Token{UINT64_MAX}};
  return layout;
}

AcceptorState Voted() {
  return {
      .base = {7, 99}, .promised = {4, NodeId{2}}, .accepted_ballot = {3, NodeId{1}}, .accepted = Small()};
}

// One that moves data, and says all that such a layout may.
Layout Moving() {
  Layout layout = Small();
  layout.epoch = 7;
  layout.base_digest = 5;
  layout.fence = 7;
  layout.abort = true;
  layout.lost = {NodeId{2}};
  layout.removed = {NodeId{2}, NodeId{3}};
  return layout;
}

const StoredSteps kSteps = {7, {{NodeId{1}, MoveStep::kDone}, {NodeId{UINT64_MAX}, MoveStep::kNone}}};

// Each encoder with a value, and whether its decoder takes bytes.
struct Case {
  const char* name;
  std::string bytes;
  std::function<absl::Status(std::string_view)> decode;
};

std::vector<Case> Cases() {
  return {
      {"layout", EncodeLayout(Small()), [](std::string_view b) { return DecodeLayout(b).status(); }},
      {"promise", EncodePromise({2, {Info(1, "a"), Info(2, "")}}),
       [](std::string_view b) { return DecodePromise(b).status(); }},
      {"acceptor", EncodeAcceptor(Voted()), [](std::string_view b) { return DecodeAcceptor(b).status(); }},
      {"nodes", EncodeNodes({Info(1, "a"), Info(2, "")}),
       [](std::string_view b) { return DecodeNodes(b).status(); }},
      {"round", EncodeRound(300), [](std::string_view b) { return DecodeRound(b).status(); }},
      {"steps", EncodeSteps(kSteps), [](std::string_view b) { return DecodeSteps(b).status(); }},
      {"abstains", EncodeAbstention({300, true}),
       [](std::string_view b) { return DecodeAbstention(b).status(); }},
      {"other", EncodeOther({2, Small()}), [](std::string_view b) { return DecodeOther(b).status(); }},
  };
}

// The same bytes with a right checksum again: what the checks behind it say.
std::string Sealed(std::string_view body) {
  ByteWriter out(0);
  out.Bytes(body);
  return out.Finish();
}

TEST(MembershipCodec, RoundTrips) {
  EXPECT_EQ(*DecodeLayout(EncodeLayout(Small())), Small());
  EXPECT_EQ(*DecodeAcceptor(EncodeAcceptor(Voted())), Voted());
  EXPECT_EQ(*DecodeAcceptor(EncodeAcceptor({})), AcceptorState{});
  const std::vector<NodeInfoValue> nodes = {Info(1, "a"), Info(2, "")};
  EXPECT_EQ(*DecodeNodes(EncodeNodes(nodes)), nodes);
  EXPECT_EQ(*DecodeNodes(EncodeNodes({})), std::vector<NodeInfoValue>{});
  EXPECT_EQ(*DecodePromise(EncodePromise({2, nodes})), (control::FormationPromise{2, nodes}));
  for (const uint64_t round : {uint64_t{0}, uint64_t{1}, UINT64_MAX})
    EXPECT_EQ(*DecodeRound(EncodeRound(round)), round);
  EXPECT_EQ(*DecodeLayout(EncodeLayout(Moving())), Moving());
  AcceptorState for_moving = Voted();
  for_moving.accepted = Moving();
  EXPECT_EQ(*DecodeAcceptor(EncodeAcceptor(for_moving)), for_moving);
  for (const StoredOther& other : {StoredOther{8, Moving()}, StoredOther{8, std::nullopt}}) {
    EXPECT_EQ(*DecodeOther(EncodeOther(other)), other);
  }
  EXPECT_EQ(*DecodeSteps(EncodeSteps(kSteps)), kSteps);
  EXPECT_EQ(*DecodeSteps(EncodeSteps({})), StoredSteps{});
  for (const bool known : {false, true}) {
    EXPECT_EQ(*DecodeAbstention(EncodeAbstention({9, known})), (Abstention{9, known}));
  }
}

TEST(MembershipCodec, HeartbeatsAndFactsStayBehind) {
  NodeInfoValue busy = Info(1, "a");
  busy.heartbeat = 5;
  busy.facts.version = "1.0";
  EXPECT_EQ(*DecodeNodes(EncodeNodes({busy})), std::vector<NodeInfoValue>{Info(1, "a")});
}

TEST(MembershipCodec, EveryTruncationIsDataLoss) {
  for (const Case& c : Cases()) {
    EXPECT_TRUE(c.decode(c.bytes).ok()) << c.name;
    for (size_t size = 0; size < c.bytes.size(); ++size) {
      EXPECT_EQ(c.decode(c.bytes.substr(0, size)).code(), absl::StatusCode::kDataLoss)
          << c.name << " " << size;
    }
    const std::string body = c.bytes.substr(0, c.bytes.size() - kChecksumBytes);
    for (size_t size = 1; size < body.size(); ++size) {
      if (c.name == std::string("other") && size == 3) continue;  // it names the epoch, and no layout
      EXPECT_FALSE(c.decode(Sealed(body.substr(0, size))).ok()) << c.name << " sealed at " << size;
    }
    EXPECT_EQ(c.decode(Sealed(body + '\0')).code(), absl::StatusCode::kDataLoss) << c.name;
  }
}

TEST(MembershipCodec, EveryChangedByteIsDataLoss) {
  for (const Case& c : Cases()) {
    for (size_t i = 0; i < c.bytes.size(); ++i) {
      for (const int flip : {1, 0x80, 0xff}) {
        std::string bytes = c.bytes;
        bytes[i] = static_cast<char>(bytes[i] ^ flip);
        EXPECT_EQ(c.decode(bytes).code(), absl::StatusCode::kDataLoss) << c.name << " " << i;
      }
    }
  }
}

// With the checksum made right, whatever is still accepted must be canonical: only the same bytes encode it.
TEST(MembershipCodec, WhatIsAcceptedIsCanonical) {
  for (const std::string& bytes : {EncodeLayout(Small()), EncodeLayout(Moving())}) {
    const std::string body = bytes.substr(0, bytes.size() - kChecksumBytes);
    for (size_t i = 0; i < body.size(); ++i) {
      for (int value = 0; value < 256; ++value) {
        std::string changed = body;
        changed[i] = static_cast<char>(value);
        const auto decoded = DecodeLayout(Sealed(changed));
        if (decoded.ok()) {
          EXPECT_EQ(EncodeLayout(*decoded), Sealed(changed)) << i << " " << value;
        }
      }
    }
  }
}

TEST(MembershipCodec, KindsAreNotMixedUp) {
  const std::vector<Case> cases = Cases();
  for (const Case& reader : cases) {
    for (const Case& written : cases) {
      EXPECT_EQ(reader.decode(written.bytes).ok(), reader.name == written.name)
          << reader.name << written.name;
    }
  }
}

TEST(MembershipCodec, LaterFormatsAreNamed) {
  for (const Case& c : Cases()) {
    std::string body = c.bytes.substr(0, c.bytes.size() - kChecksumBytes);
    body[0] = 2;
    EXPECT_EQ(c.decode(Sealed(body)).code(), absl::StatusCode::kUnimplemented) << c.name;
  }
}

TEST(MembershipCodec, RefusesWhatNoNodeWrites) {
  EXPECT_FALSE(DecodeNodes(EncodeNodes({Info(2, ""), Info(1, "")})).ok()) << "not sorted";
  EXPECT_FALSE(DecodeNodes(EncodeNodes({Info(1, ""), Info(1, "")})).ok()) << "twice";
  EXPECT_FALSE(DecodeNodes(EncodeNodes({Info(0, "")})).ok()) << "no id";
  EXPECT_FALSE(DecodeNodes(EncodeNodes({Info(1, std::string(256, 'z'))})).ok()) << "too long";
  EXPECT_FALSE(DecodePromise(EncodePromise({0, {}})).ok()) << "of nobody";
  AcceptorState state = Voted();
  state.promised = {2, NodeId{1}};
  EXPECT_FALSE(DecodeAcceptor(EncodeAcceptor(state)).ok()) << "accepted above what was promised";
  EXPECT_FALSE(DecodeOther(EncodeOther({9, Moving()})).ok()) << "not the layout before";
  EXPECT_FALSE(DecodeSteps(EncodeSteps({1, {{NodeId{2}, {}}, {NodeId{1}, {}}}})).ok()) << "not sorted";
  EXPECT_FALSE(DecodeSteps(EncodeSteps({1, {{NodeId{2}, static_cast<MoveStep>(5)}}})).ok());
  StoredSteps many = {1, {}};
  while (many.steps.size() <= control::kStepsMax) many.steps.push_back({NodeId{many.steps.size() + 1}, {}});
  EXPECT_FALSE(DecodeSteps(EncodeSteps(many)).ok());
  Layout counts = Small();
  counts.keyspaces[0].r = {ReplicaCount::How::kOne, 2};
  EXPECT_FALSE(DecodeLayout(EncodeLayout(counts)).ok()) << "a name and a number";
  Layout layout = Small();
  layout.voters.clear();
  EXPECT_FALSE(DecodeLayout(EncodeLayout(layout)).ok());
}

}  // namespace
}  // namespace gyre
