// Membership of clusters small and large: who is up is known everywhere in time, and so is what nodes say of
// themselves, by a number of messages that does not grow with the cluster.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "server/core/membership_codec.h"
#include "tests/server/core/membership_cluster.h"

namespace gyre {
namespace {

constexpr Micros kNoticed = Seconds(5);  // a death, by everybody
constexpr uint64_t kRoundsASecond = 5;
static_assert(FailureDetector::kRound == Millis(1000 / kRoundsASecond));

// A formed cluster of that many nodes, a tenth of whose messages are lost, after its first seconds.
class ClusterOf : public testing::TestWithParam<int> {
 protected:
  ClusterOf() : cluster_(static_cast<uint64_t>(GetParam())) {
    std::vector<FirstMember> members;
    std::vector<NodeInfoValue> known;
    for (int i = 0; i < GetParam(); ++i) {
      cluster_.Add(GetParam(), {"a0", "a1"});
      members.push_back({cluster_.node(i).config.self.id, ""});
      known.push_back(cluster_.node(i).config.self);
    }
    const Layout layout = FirstLayout(members);
    for (int i = 0; i < GetParam(); ++i) {
      cluster_.node(i).disk = {{"cluster/layout", EncodeLayout(layout)},
                               {"cluster/known", EncodeNodes(known)}};
    }
    cluster_.faults() = {.loss = .1, .duplicate = .01, .delay_max = Millis(20)};
    cluster_.StartAll();
    cluster_.Run(Seconds(2));
  }

  // Every node that runs, other than node `i`, suspects just these.
  void ExpectSuspects(int i, const std::vector<NodeId>& suspects) {
    for (int j = 0; j < cluster_.size(); ++j) {
      if (j == i || !cluster_.up(j)) continue;
      EXPECT_EQ(cluster_[j].detector().suspects(), suspects) << "node " << j + 1;
    }
  }
  int LogLinesWith(int i, const std::string& text) {
    int lines = 0;
    for (const std::string& line : cluster_.node(i).log) lines += line.find(text) != std::string::npos;
    return lines;
  }

  MembershipCluster cluster_;
};

TEST_P(ClusterOf, NewsIsEverywhereInTimeByFewMessages) {
  ExpectSuspects(-1, {});
  cluster_[0].SetFacts({.keys = 77, .hints_for = {}, .version = "1"});
  const uint64_t before = cluster_.sent();
  cluster_.Run(Seconds(1));
  const auto told = static_cast<uint64_t>(std::min(GetParam() - 1, FailureDetector::kFanout));
  EXPECT_EQ(cluster_.sent() - before, kRoundsASecond * told * static_cast<uint64_t>(GetParam()));
  cluster_.Crash(1);
  cluster_.Run(kNoticed);
  ExpectSuspects(1, {NodeId{2}});
  for (int i = 0; i < GetParam(); ++i) {
    if (i == 1) continue;
    EXPECT_EQ(cluster_[i].known().at(NodeId{1}).facts.keys, 77u) << "node " << i + 1;
  }
  cluster_.Start(1);
  cluster_.Run(Seconds(2));
  ExpectSuspects(-1, {});
}

INSTANTIATE_TEST_SUITE_P(Sizes, ClusterOf, testing::Values(3, 30, 300));

class SmallClusterOf : public ClusterOf {};

TEST_P(SmallClusterOf, Case63_APausedNodeAccusesNobody) {
  cluster_.Pause(1, cluster_.now() + Seconds(15));
  cluster_.Run(Seconds(15) - Micros{1});
  ExpectSuspects(1, {NodeId{2}});
  for (int i = 0; i < 50; ++i) {
    cluster_.Run(Millis(100));
    EXPECT_EQ(cluster_[1].detector().suspects(), std::vector<NodeId>{});
  }
  EXPECT_EQ(LogLinesWith(1, "did not run for 15 s"), 1);
  ExpectSuspects(-1, {});
}

TEST_P(SmallClusterOf, AnIslandIsSuspectedFromBothSides) {
  cluster_.node(1).side = 1;
  cluster_.Run(kNoticed);
  ExpectSuspects(1, {NodeId{2}});
  EXPECT_EQ(cluster_[1].detector().suspects().size(), static_cast<size_t>(GetParam()) - 1);
  cluster_.node(1).side = 0;
  cluster_.Run(Seconds(3));
  ExpectSuspects(-1, {});
}

TEST_P(SmallClusterOf, ANewLayoutIsSoonKnown) {
  const uint64_t ticket = cluster_.Create(1, Seconds(4));
  cluster_.Run(Seconds(4));
  ASSERT_NE(cluster_.AnswerTo(ticket), nullptr);
  EXPECT_TRUE(cluster_.AnswerTo(ticket)->ok()) << *cluster_.AnswerTo(ticket);
  EXPECT_TRUE(cluster_.Agreed());
}

INSTANTIATE_TEST_SUITE_P(Sizes, SmallClusterOf, testing::Values(3, 30));

}  // namespace
}  // namespace gyre
