// Forming a cluster and changing its layout, case by case.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "server/core/membership_codec.h"
#include "tests/server/core/membership_cluster.h"

namespace gyre {
namespace {

int LogLinesWith(const SimNode& node, const std::string& text) {
  return static_cast<int>(std::ranges::count_if(
      node.log, [&](const std::string& line) { return line.find(text) != std::string::npos; }));
}

std::vector<NodeId> Ids(const View& view) {
  std::vector<NodeId> ids;
  for (const Member& member : view.layout.members) ids.push_back(member.id);
  return ids;
}

const std::vector<NodeId> kOneToThree = {NodeId{1}, NodeId{2}, NodeId{3}};

// Three formed nodes that know each other by one seed.
struct Three : MembershipCluster {
  Three() : MembershipCluster(1) {
    for (int i = 0; i < 3; ++i) Add(3, {"a0"});
    StartAll();
    Run(Seconds(4));
    EXPECT_TRUE(Agreed());
  }
};

// What a node does about one message at second 100 of its clock.
MembershipOutbox StepOf(Membership& membership, control::Message message, Micros at = Seconds(100)) {
  MembershipOutbox out;
  membership.Step({at, 1'700'000'100'000}, message, out);
  return out;
}

template <typename Body>
const Body* FirstSent(const MembershipOutbox& out) {
  for (const auto& send : out.sends) {
    if (const Body* const body = std::get_if<Body>(&send.message.body); body != nullptr) return body;
  }
  return nullptr;
}

TEST(Forming, OneNodeFormsAloneAtOnce) {
  MembershipCluster cluster(1);
  cluster.Add(1, {"a0"});
  cluster.Start(0);
  ASSERT_NE(cluster[0].view(), nullptr);
  EXPECT_EQ(cluster[0].view()->layout, FirstLayout({{NodeId{1}, "zone0", 1}}));
  const uint64_t ticket = cluster.Create(0, Seconds(1));
  ASSERT_NE(cluster.AnswerTo(ticket), nullptr) << "nobody else has a say";
  EXPECT_TRUE(cluster.AnswerTo(ticket)->ok());
  EXPECT_EQ(cluster[0].view()->layout.epoch, 2u);
}

TEST(Forming, AChainOfSeedsIsEnough) {
  MembershipCluster cluster(1);
  cluster.Add(3, {"a1"});
  cluster.Add(3, {"a2"});
  cluster.Add(3, {});
  cluster.StartAll();
  cluster.Run(Seconds(5));
  EXPECT_TRUE(cluster.Agreed());
  EXPECT_EQ(Ids(*cluster[0].view()), kOneToThree);
  EXPECT_EQ(cluster[0].view()->layout.members[1].zone, "zone1");
  EXPECT_EQ(cluster[2].obstacle(), "");
}

TEST(Forming, WaitsForAll) {
  MembershipCluster cluster(1);
  for (int i = 0; i < 3; ++i) cluster.Add(3, {"a0"});
  cluster.Start(0);
  cluster.Start(1);
  cluster.Run(Seconds(30));
  EXPECT_EQ(cluster[0].view(), nullptr);
  EXPECT_EQ(LogLinesWith(cluster.node(0), "2 nodes are known"), 1) << "said once, not each second";
  const uint64_t ticket = cluster.Create(0, Seconds(1));
  EXPECT_EQ(cluster.AnswerTo(ticket)->code(), absl::StatusCode::kUnavailable);
  cluster.Start(2);
  cluster.Run(Seconds(4));
  EXPECT_TRUE(cluster.Agreed());
}

TEST(Forming, DifferentNumbersAreNamed) {
  MembershipCluster cluster(1);
  cluster.Add(3, {"a0"});
  cluster.Add(3, {"a0"});
  cluster.Add(4, {"a0"});
  cluster.StartAll();
  cluster.Run(Seconds(30));
  EXPECT_TRUE(cluster.cluster_ids().empty());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cluster.node(i).disk.count("cluster/promise"), 0u);
  EXPECT_EQ(
      LogLinesWith(cluster.node(0), "0000000000000003 at a2 was started with cluster.bootstrap_expect = 4"),
      1);
  cluster.Crash(2);
  cluster.node(2).config.bootstrap_expect = 3;
  cluster.Start(2);
  cluster.Run(Seconds(4));
  EXPECT_TRUE(cluster.Agreed());
}

TEST(Forming, MoreNodesThanExpectedFormNothing) {
  MembershipCluster cluster(1);
  for (int i = 0; i < 4; ++i) cluster.Add(3, {});
  cluster.Add(3, {"a0", "a1", "a2", "a3"});
  cluster.StartAll();
  cluster.Run(Seconds(30));
  EXPECT_TRUE(cluster.cluster_ids().empty());
  EXPECT_EQ(LogLinesWith(cluster.node(0), "5 nodes are known"), 1);
  EXPECT_EQ(LogLinesWith(cluster.node(0), "set the number to 5 on all"), 1);
}

TEST(Forming, AWipedNodeAtTheSameAddressCountsOnce) {
  MembershipCluster cluster(1);
  for (int i = 0; i < 2; ++i) cluster.Add(2, {"a0"});
  cluster.node(1).config.bootstrap_expect = 3;  // keeps it from forming
  cluster.StartAll();
  cluster.Run(Seconds(3));
  cluster.Crash(1);
  cluster.node(1).config.bootstrap_expect = 2;
  cluster.node(1).config.self.id = NodeId{7};
  cluster.node(1).disk.clear();
  cluster.Start(1);
  cluster.Run(Seconds(4));
  EXPECT_TRUE(cluster.Agreed());
  EXPECT_EQ(Ids(*cluster[0].view()), (std::vector<NodeId>{NodeId{1}, NodeId{7}}));
}

TEST(Forming, APromiseOutlivesTheProcess) {
  MembershipCluster cluster(1);
  for (int i = 0; i < 3; ++i) cluster.Add(2, {});
  cluster.node(0).config.seeds = {"a1"};
  cluster.Start(0);
  cluster.Start(1);
  while (cluster.node(0).disk.count("cluster/promise") == 0 && cluster.now() < Seconds(10))
    cluster.Run(Millis(1));
  ASSERT_EQ(cluster[0].view(), nullptr);
  cluster.Crash(0);
  cluster.Crash(1);
  cluster.node(1).disk.clear();  // forgets the other, and is not coming back
  cluster.node(0).disk.erase("cluster/known");
  cluster.node(0).config.seeds = {"a2"};
  cluster.Start(0);
  cluster.Start(2);
  cluster.Run(Seconds(20));
  EXPECT_TRUE(cluster.cluster_ids().empty()) << "it has promised to form one with node 2 only";
  EXPECT_EQ(LogLinesWith(cluster.node(0), "waits for the promises of 0000000000000002"), 1);
}

TEST(Forming, ResumesInTheMiddle) {
  for (int crash_after = 1; crash_after < 60; ++crash_after) {
    MembershipCluster cluster(1);
    for (int i = 0; i < 3; ++i) cluster.Add(3, {"a0"});
    cluster.StartAll();
    cluster.Run(Millis(crash_after * 40));
    for (int i = 0; i < 3; ++i) cluster.Crash(i);
    cluster.StartAll();
    cluster.Run(Seconds(5));
    EXPECT_TRUE(cluster.Agreed()) << crash_after;
  }
}

TEST(Later, AFurtherNodeIsKnownButNoMember) {
  Three cluster;
  const int further = cluster.Add(3, {"a2"});
  cluster.Start(further);
  cluster.Run(Seconds(4));
  EXPECT_TRUE(cluster.Agreed());
  EXPECT_EQ(Ids(*cluster[further].view()), kOneToThree);
  EXPECT_EQ(LogLinesWith(cluster.node(further), "this node is not among the members"), 1);
  EXPECT_TRUE(cluster[0].known().contains(NodeId{4}));
  const uint64_t ticket = cluster.Create(further, Seconds(3));
  cluster.Run(Seconds(3));
  ASSERT_NE(cluster.AnswerTo(ticket), nullptr);
  EXPECT_TRUE(cluster.AnswerTo(ticket)->ok()) << "any node may propose";
  cluster.Crash(further);
  cluster.Start(further);
  EXPECT_NE(cluster[further].view(), nullptr) << "the cluster is fixed from then on";
}

TEST(Later, AllAddressesChangeButOneSeedIsKept) {
  Three cluster;
  for (int i = 0; i < 3; ++i) cluster.Crash(i);
  for (int i = 0; i < 3; ++i) {
    cluster.Move(i, "b" + std::to_string((i + 1) % 3));
    cluster.node(i).config.seeds = {"b1"};
  }
  cluster.StartAll();
  cluster.Run(Seconds(4));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cluster[i].known().at(NodeId{1}).peer_address, "b1");
    EXPECT_EQ(cluster[i].known().at(NodeId{3}).peer_address, "b0");
  }
  const uint64_t ticket = cluster.Create(0, Seconds(3));
  cluster.Run(Seconds(3));
  EXPECT_TRUE(cluster.AnswerTo(ticket)->ok());
}

TEST(Later, SwappedAddressesAreFoundOut) {
  Three cluster;
  for (int i = 0; i < 3; ++i) cluster.Crash(i);
  for (int i = 0; i < 3; ++i) cluster.Move(i, "a" + std::to_string((i + 1) % 3));
  cluster.StartAll();
  cluster.Run(Seconds(5));
  for (int i = 0; i < 3; ++i) {
    for (uint64_t id = 1; id <= 3; ++id) {
      EXPECT_EQ(cluster[i].known().at(NodeId{id}).peer_address, "a" + std::to_string(id % 3));
    }
  }
}

TEST(Later, Case64_PeersAreRememberedWhenTheSeedIsDead) {
  Three cluster;
  cluster.Run(Seconds(2));
  for (int i = 0; i < 3; ++i) cluster.Crash(i);
  cluster.Run(Seconds(1));  // what was on its way arrives at nobody
  for (int i = 0; i < 3; ++i) cluster.node(i).config.seeds = {"nobody"};
  cluster.Start(1);
  cluster.Start(2);
  cluster.Run(Seconds(3));
  EXPECT_TRUE(cluster[1].last_heard(NodeId{3}).has_value());
  EXPECT_FALSE(cluster[1].last_heard(NodeId{1}).has_value());
  const uint64_t ticket = cluster.Create(1, Seconds(3));
  cluster.Run(Seconds(3));
  EXPECT_TRUE(cluster.AnswerTo(ticket)->ok());
}

TEST(Later, AClockSetBackDoesNotMakeANodeOld) {
  Three cluster;
  const uint64_t before = cluster[0].known().at(NodeId{1}).generation;
  cluster.node(0).config.self.generation = 5;
  absl::Status status;
  Membership restarted(cluster.node(0).config, cluster.node(0).disk, &status);
  ASSERT_TRUE(status.ok());
  EXPECT_GT(restarted.known().at(NodeId{1}).generation, before);
}

TEST(Later, FactsSpread) {
  Three cluster;
  cluster[0].SetFacts(
      {.keys = 10, .bytes = 20, .hints_for = {{NodeId{7}, 30}}, .layout_epoch = 0, .version = "1.2"});
  cluster.Run(Seconds(2));
  EXPECT_EQ(
      cluster[2].known().at(NodeId{1}).facts,
      (NodeFactsValue{
          .keys = 10, .bytes = 20, .hints_for = {{NodeId{7}, 30}}, .layout_epoch = 1, .version = "1.2"}));
}

TEST(Changing, KeyspacesComeAndGo) {
  Three cluster;
  const auto change = [&](int i, LayoutChange::What what) {
    const uint64_t ticket = cluster.Change(i, Seconds(3), std::move(what));
    cluster.Run(Seconds(3));
    return cluster.AnswerTo(ticket)->code();
  };
  EXPECT_EQ(change(0, LayoutChange::Create{{.name = "carts", .r = {}, .w = {}}}), absl::StatusCode::kOk);
  EXPECT_EQ(change(1, LayoutChange::Create{{.name = "carts", .r = {}, .w = {}}}),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(change(1, LayoutChange::Create{{.name = "", .r = {}, .w = {}}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(change(2, LayoutChange::Set{"carts", ReplicaCount{ReplicaCount::How::kOne, 0}, {}, 60'000, true}),
            absl::StatusCode::kOk);
  const KeyspaceSpec* const carts = cluster[0].view()->Keyspace("carts");
  ASSERT_NE(carts, nullptr);
  EXPECT_EQ(carts->r.how, ReplicaCount::How::kOne);
  EXPECT_EQ(carts->w.how, ReplicaCount::How::kQuorum);
  EXPECT_EQ(carts->ttl_ms, 60'000u);
  EXPECT_TRUE(carts->strict);
  EXPECT_EQ(change(2, LayoutChange::Set{"carts", {}, {}, 1, {}}), absl::StatusCode::kOk);
  EXPECT_TRUE(cluster[0].view()->Keyspace("carts")->strict) << "what is not named stays";
  EXPECT_EQ(change(0, LayoutChange::Set{"ghost", {}, {}, 1, {}}), absl::StatusCode::kNotFound);
  EXPECT_EQ(change(0, LayoutChange::Drop{"carts"}), absl::StatusCode::kOk);
  EXPECT_EQ(change(1, LayoutChange::Drop{"carts"}), absl::StatusCode::kNotFound);
  EXPECT_EQ(cluster[1].view()->layout.epoch, 5u);
  EXPECT_TRUE(cluster.Agreed());
}

TEST(Changing, AllAtOnceAllSucceed) {
  Three cluster;
  std::vector<uint64_t> tickets;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 3; ++i) tickets.push_back(cluster.Create(i, Seconds(20)));
  }
  cluster.Run(Seconds(20));
  for (const uint64_t ticket : tickets) {
    ASSERT_NE(cluster.AnswerTo(ticket), nullptr);
    EXPECT_TRUE(cluster.AnswerTo(ticket)->ok()) << *cluster.AnswerTo(ticket);
  }
  EXPECT_EQ(cluster[0].view()->layout.epoch, 13u);
  cluster.CheckAnswers();
}

TEST(Changing, AMinorityChangesNothing) {
  Three cluster;
  cluster.node(0).side = 1;
  const uint64_t alone = cluster.Create(0, Seconds(2));
  const uint64_t behind_it = cluster.Create(0, Seconds(2));
  const uint64_t together = cluster.Create(1, Seconds(2));
  cluster.Run(Seconds(3));
  EXPECT_EQ(*cluster.AnswerTo(alone),
            absl::UnavailableError("1 of 3 voters answered; a majority of 2 is needed; nothing was changed"));
  EXPECT_EQ(cluster.AnswerTo(behind_it)->code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(cluster.AnswerTo(together)->ok());
  EXPECT_EQ(cluster[0].view()->layout.epoch, 1u);
  cluster.Heal();
  cluster.Run(Seconds(3));
  EXPECT_TRUE(cluster.Agreed());
  cluster.CheckAnswers();
}

TEST(Changing, TooManyAtOnceAreRefusedEarly) {
  Three cluster;
  cluster.node(0).side = 1;
  for (size_t i = 0; i < Membership::kChangesMax; ++i) cluster.Create(0, Seconds(2));
  const uint64_t one_more = cluster.Create(0, Seconds(2));
  ASSERT_NE(cluster.AnswerTo(one_more), nullptr);
  EXPECT_EQ(cluster.AnswerTo(one_more)->code(), absl::StatusCode::kResourceExhausted);
  cluster.Run(Seconds(3));
  EXPECT_EQ(cluster.answers().size(), Membership::kChangesMax + 1);
}

TEST(Changing, AfterAnAcceptTheOutcomeIsUnknown) {
  Three cluster;
  Membership& node = cluster[0];
  const Now now{cluster.now(), 0};
  MembershipOutbox out;
  node.Change(now, {77, now.steady + Seconds(1), LayoutChange::Create{{.name = "carts", .r = {}, .w = {}}}},
              out);
  const auto* const prepare = FirstSent<control::Prepare>(out);
  ASSERT_NE(prepare, nullptr);
  control::Prepared yes;
  yes.base_epoch = prepare->base_epoch;
  yes.base_digest = prepare->base_digest;
  yes.ballot = prepare->ballot;
  yes.promised = true;
  MembershipOutbox accepting =
      StepOf(node, {node.view()->layout.cluster_id, NodeId{2}, "a1", yes}, now.steady);
  ASSERT_NE(FirstSent<control::Accept>(accepting), nullptr);
  MembershipOutbox late;
  node.Tick({now.steady + Seconds(1), 0}, late);
  ASSERT_EQ(late.answers.size(), 1u);
  EXPECT_EQ(late.answers[0].ticket, 77u);
  EXPECT_EQ(late.answers[0].status.code(), absl::StatusCode::kUnknown);
}

TEST(Changing, AVoteOutlivesTheProcess) {
  Three cluster;
  SimNode& node = cluster.node(0);
  const Layout next = *WithKeyspace(node.view->layout, {.name = "carts", .r = {}, .w = {}});
  const uint64_t id = next.cluster_id;
  control::Accept accept{1, node.view->digest, {5, NodeId{2}}, next};
  MembershipOutbox voted = StepOf(cluster[0], {id, NodeId{2}, "a1", accept});
  ASSERT_TRUE(FirstSent<control::Accepted>(voted)->accepted);
  ASSERT_EQ(voted.persists.size(), 1u) << "durable before the answer";
  node.disk[voted.persists[0].key] = voted.persists[0].value;

  absl::Status status;
  Membership restarted(node.config, node.disk, &status);
  ASSERT_TRUE(status.ok());
  const control::Prepare lower{1, node.view->digest, {4, NodeId{3}}};
  EXPECT_FALSE(FirstSent<control::Prepared>(StepOf(restarted, {id, NodeId{3}, "a2", lower}))->promised);
  const control::Prepare higher{1, node.view->digest, {6, NodeId{3}}};
  const MembershipOutbox told = StepOf(restarted, {id, NodeId{3}, "a2", higher});
  EXPECT_EQ(FirstSent<control::Prepared>(told)->accepted, next);
}

TEST(Changing, BallotsAreNotUsedAgainInALaterLife) {
  Three cluster;
  const auto first_round = [&](Membership& membership) {
    MembershipOutbox out;
    membership.Change({cluster.now(), 0}, {1, cluster.now() + Seconds(1), LayoutChange::Drop{"default"}},
                      out);
    for (const auto& persist : out.persists) cluster.node(0).disk[persist.key] = persist.value;
    return FirstSent<control::Prepare>(out)->ballot.round;
  };
  const uint64_t before = first_round(cluster[0]);
  absl::Status status;
  Membership restarted(cluster.node(0).config, cluster.node(0).disk, &status);
  EXPECT_GT(first_round(restarted), before);
}

TEST(Refusing, OtherClusters) {
  Three cluster;
  const Layout foreign = FirstLayout({{NodeId{8}, "", 1}});
  const control::Message push{foreign.cluster_id, NodeId{8}, "x", control::LayoutPush{foreign}};
  MembershipOutbox out = StepOf(cluster[0], push);
  EXPECT_TRUE(out.persists.empty());
  EXPECT_TRUE(out.sends.empty());
  ASSERT_EQ(out.log.size(), 1u);
  EXPECT_NE(out.log[0].find(ToString(Token{foreign.cluster_id})), std::string::npos);
  EXPECT_NE(out.log[0].find(ToString(Token{cluster[0].view()->layout.cluster_id})), std::string::npos);
  EXPECT_TRUE(StepOf(cluster[0], push, Seconds(159)).log.empty()) << "once a minute";
  EXPECT_EQ(StepOf(cluster[0], push, Seconds(160)).log.size(), 1u);
}

TEST(Refusing, ALayoutOfAnotherLine) {
  Three cluster;
  Layout other = *WithKeyspace(cluster[0].view()->layout, {.name = "carts", .r = {}, .w = {}});
  ++other.base_digest;
  const MembershipOutbox out =
      StepOf(cluster[0], {other.cluster_id, NodeId{2}, "a1", control::LayoutPush{other}});
  EXPECT_FALSE(out.new_layouts.has_value());
  ASSERT_EQ(out.log.size(), 1u);
  EXPECT_NE(out.log[0].find("two were chosen"), std::string::npos);
}

TEST(Refusing, WhoSaysThatItIsThisNode) {
  Three cluster;
  const control::Message elsewhere{0, NodeId{1}, "elsewhere", control::LayoutWanted{}};
  const MembershipOutbox out = StepOf(cluster[0], elsewhere);
  EXPECT_TRUE(out.sends.empty());
  EXPECT_EQ(out.log.size(), 1u);
  EXPECT_TRUE(StepOf(cluster[0], {0, NodeId{1}, "a0", control::LayoutWanted{}}).log.empty())
      << "a seed named itself";
}

TEST(Refusing, BytesThatCannotBeRead) {
  Three cluster;
  for (const char* key : {"layout", "acceptor", "promise", "known", "round"}) {
    std::map<std::string, std::string> disk = cluster.node(0).disk;
    disk[std::string("cluster/") + key] = "garbage";
    absl::Status status;
    Membership membership(cluster.node(0).config, disk, &status);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << key;
  }
  // A vote about a layout that the store does not hold: something was lost.
  std::map<std::string, std::string> disk = cluster.node(0).disk;
  AcceptorState state;
  state.base = {9, 9};
  disk["cluster/acceptor"] = EncodeAcceptor(state);
  absl::Status status;
  Membership membership(cluster.node(0).config, disk, &status);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace gyre
