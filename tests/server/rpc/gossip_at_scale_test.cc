// Many nodes: how fast what one of them changed is everywhere, and what gossip costs. GOSSIP_NODES=1000 plays
// a thousand of them, which takes minutes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>

#include "server/core/membership_codec.h"
#include "server/rpc/convert_control.h"
#include "storage/format/meta_codec.h"
#include "tests/server/core/membership_cluster.h"

namespace gyre {
namespace {

const char* const kAsked = std::getenv("GOSSIP_NODES");
const int kNodes = kAsked ? std::atoi(kAsked) : 200;
constexpr int kRoundsMost = 15;

NodeId IdOf(int i) { return NodeId{static_cast<uint64_t>(i) + 1}; }

// A cluster that has formed, and one node more that is no member.
class GossipAtScale : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<FirstMember> members;
    for (int i = 0; i < kNodes; ++i) {
      members.push_back({IdOf(i), "zone" + std::to_string(i % 3), 1});
    }
    const std::shared_ptr<const View> view = *MakeView(FirstLayout(std::move(members)));
    const std::string layout = EncodeLayout(view->layout);
    for (int i = 0; i <= kNodes; ++i) cluster_.Add(kNodes, {"a0", "a1"});
    std::vector<NodeInfoValue> known;
    for (int i = 0; i <= kNodes; ++i) known.push_back(cluster_.node(i).config.self);
    for (int i = 0; i <= kNodes; ++i) {
      auto& disk = cluster_.node(i).disk;
      disk[std::string(kMetaMembership) + "known"] = EncodeNodes(known);
      if (i == kNodes) continue;
      disk[std::string(kMetaMembership) + "layout"] = layout;
      cluster_.node(i).view = view;
    }
    cluster_.on_send = [this](const control::Message& message) {
      ++messages_;
      if (messages_ % kWeighed != 0) return;
      v1::ControlMessage encoded;
      FromControl(message, encoded);
      bytes_ += encoded.ByteSizeLong() * kWeighed;
    };
    cluster_.StartAll();
    ASSERT_TRUE(Settles(Seconds(20)));
  }

  static constexpr uint64_t kWeighed = 16;  // one message of so many is encoded, to know its size

  bool Settles(Micros at_most) {
    for (const Micros end = cluster_.now() + at_most; cluster_.now() < end;) {
      cluster_.Run(Millis(20));
      if (cluster_.Agreed()) return true;
    }
    return false;
  }

  // How long a change takes until all nodes have its layout, the voting included.
  int RoundsUntilAgreed(uint64_t ticket) {
    const Micros begun = cluster_.now();
    const bool answered =
        cluster_.RunUntil(Seconds(30), [&] { return cluster_.AnswerTo(ticket) != nullptr; });
    EXPECT_TRUE(answered);
    if (!answered) return kRoundsMost + 1;
    EXPECT_TRUE(cluster_.AnswerTo(ticket)->ok()) << *cluster_.AnswerTo(ticket);
    EXPECT_TRUE(Settles({FailureDetector::kRound.value * kRoundsMost}));
    const int64_t round = FailureDetector::kRound.value;
    return static_cast<int>((cluster_.now().value - begun.value + round - 1) / round);
  }

  void Report(const char* what, int rounds) {
    std::printf("%s: %d rounds of gossip\n", what, rounds);
    EXPECT_LT(rounds, kRoundsMost) << what;
  }

  MembershipCluster cluster_{1};
  uint64_t messages_ = 0;
  uint64_t bytes_ = 0;
};

TEST_F(GossipAtScale, AChangeIsEverywhereWithinFifteenRounds) {
  messages_ = bytes_ = 0;
  cluster_.Run(Seconds(2));
  std::printf("%d nodes at rest: %.1f messages and %.0f bytes a node and second\n", kNodes,
              static_cast<double>(messages_) / 2 / kNodes, static_cast<double>(bytes_) / 2 / kNodes);

  Report("a keyspace", RoundsUntilAgreed(cluster_.Create(0, Seconds(30))));

  cluster_.faults().loss = .1;
  Report("a keyspace, with a tenth of all messages lost",
         RoundsUntilAgreed(cluster_.Create(kNodes / 2, Seconds(30))));

  messages_ = bytes_ = 0;
  const Micros begun = cluster_.now();
  MemberChanges changes;
  changes.add.push_back({.node = IdOf(kNodes), .zone = "zone1"});
  const View& base = *cluster_[7].view();
  Report("a member more",
         RoundsUntilAgreed(cluster_.Change(
             7, Seconds(30),
             LayoutChange::Members{
                 .changes = changes, .base_digest = base.digest, .base_epoch = base.layout.epoch})));
  const double seconds = static_cast<double>(cluster_.now().value - begun.value) / 1e6;
  std::printf("during that: %.0f bytes a node and second\n", static_cast<double>(bytes_) / seconds / kNodes);
}

}  // namespace
}  // namespace gyre
