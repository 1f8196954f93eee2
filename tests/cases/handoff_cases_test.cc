// Cases of section C, hinted handoff: each test is named by its case in README.md.
#include <deque>

#include "tests/cases/scripted_cluster.h"

namespace gyre::cases {
namespace {

uint64_t HintBytes(const ScriptedCluster& cluster, size_t node) {
  uint64_t bytes = 0;
  for (const auto& [target, count] : cluster.core(node).replica().hints()) bytes += count.bytes;
  return bytes;
}

uint64_t HintsRefused(const ScriptedCluster& cluster) {
  uint64_t refused = 0;
  for (size_t node = 0; node < cluster.size(); ++node)
    if (cluster.alive(node)) refused += cluster.core(node).replica().hints_refused();
  return refused;
}

// Asks `count` puts of keys of their own, `in_flight` of them at once. Returns how many were good.
int PutMany(ScriptedCluster& cluster, const std::string& prefix, int count, int in_flight,
            const std::string& value = "v", const std::set<size_t>& down = {}) {
  int good = 0;
  int under_way = 0;
  for (int i = 0; i < count; ++i) {
    EXPECT_TRUE(cluster.RunUntil([&] { return under_way < in_flight; }));
    ++under_way;
    size_t node = static_cast<size_t>(i) % cluster.size();
    while (down.contains(node)) node = (node + 1) % cluster.size();
    cluster.AskLater(node, PutCall{.key = prefix + std::to_string(i), .value = value},
                     [&](const CallResult& result) {
                       --under_way;
                       if (result.status.ok()) ++good;
                     });
  }
  EXPECT_TRUE(cluster.RunUntil([&] { return under_way == 0; }));
  return good;
}

// A target that comes back now and then gives nobody a new allowance: what is held stays under one limit.
TEST(CasesC, Case28_HintsForAFlappingTargetStayUnderTheirLimit) {
  constexpr size_t kLimit = 1000;
  ScriptedCluster cluster({.limits = {.hint_bytes = kLimit}});
  uint64_t most = 0;
  for (int flap = 0; flap < 15; ++flap) {
    cluster.Kill(2);
    cluster.Run(Millis(100));
    EXPECT_EQ(PutMany(cluster, std::to_string(flap) + "-", 100, 1, std::string(50, 'v'), {2}), 100);
    cluster.Run(Millis(1500));
    for (size_t node = 0; node < 2; ++node) most = std::max(most, HintBytes(cluster, node));
    cluster.Start(2);
    cluster.Run(Millis(500));
  }
  EXPECT_GT(HintsRefused(cluster), 0u) << "the limit was never met";
  EXPECT_GT(most, kLimit / 2);
  EXPECT_LE(most, kLimit);
  cluster.Quiesce();
}

// The limit holds although many hints are under way to disk at once, and although hints that are there grow.
TEST(CasesC, Case28_TheLimitHoldsInABurstAndWhileHintsGrow) {
  constexpr size_t kLimit = 20'000;
  ScriptedCluster cluster({.nodes = 4, .limits = {.hint_bytes = kLimit}});
  cluster.Kill(3);
  cluster.Run(Millis(100));
  EXPECT_EQ(PutMany(cluster, "burst", 2000, 500, std::string(500, 'v'), {3}), 2000);
  cluster.Run(Seconds(5));
  for (size_t node = 0; node < 3; ++node) EXPECT_LE(HintBytes(cluster, node), kLimit);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(PutMany(cluster, "burst", 100, 10, std::string(5000, 'v'), {3}), 100);
  cluster.Run(Seconds(5));
  for (size_t node = 0; node < 3; ++node) EXPECT_LE(HintBytes(cluster, node), kLimit);
  EXPECT_GT(HintsRefused(cluster), 0u);
  cluster.Start(3);
  cluster.Quiesce();
}

// Where a fallback coordinates, because no primary can be reached, what it holds is a hint like any other.
TEST(CasesC, Case28_TheLimitHoldsWhereAFallbackCoordinates) {
  constexpr size_t kLimit = 20'000;
  ScriptedCluster cluster({.nodes = 4, .limits = {.hint_bytes = kLimit}});
  cluster.Part({3});  // alone, it is primary of three keys in four and a fallback for the fourth
  cluster.Run(Millis(100));
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    const CallResult result =
        cluster.Ask(3, PutCall{.key = "k" + std::to_string(i), .value = std::string(500, 'v'), .w = kOne});
    if (result.status.ok()) continue;
    ++refused;
    ASSERT_TRUE(absl::IsResourceExhausted(result.status)) << result.status;
    ASSERT_NE(result.status.message().find("limits.hint_bytes"), std::string::npos) << result.status;
  }
  EXPECT_GT(refused, 10);
  EXPECT_LE(HintBytes(cluster, 3), kLimit);
  EXPECT_GT(HintBytes(cluster, 3), kLimit / 2);
  cluster.Mend();
  cluster.Quiesce();
}

TEST(CasesC, Case30_EachHintIsDeliveredOnceAndThenGone) {
  ScriptedCluster cluster;
  cluster.Kill(2);
  cluster.Run(Millis(100));
  EXPECT_EQ(PutMany(cluster, "k", 1000, 50, "v", {2}), 1000);
  cluster.Run(Seconds(3));
  EXPECT_EQ(cluster.HintsHeld(), 1000u);
  cluster.Start(2);
  cluster.Quiesce();
  EXPECT_EQ(cluster.deliveries().size(), 1000u);
  for (const auto& [row_key, times] : cluster.deliveries()) EXPECT_LE(times, 2);
  for (size_t node = 0; node < 3; ++node) EXPECT_EQ(cluster.RowsOnDisk(node, Table::kHints), 0u);
  const auto delivered = cluster.deliveries();
  cluster.Run(Seconds(120));
  EXPECT_EQ(cluster.deliveries(), delivered) << "what was delivered is sent again";
}

// A hint whose target answers that it cannot store just now is not sent again and again at once.
TEST(CasesC, Case30_ATargetThatRefusesIsNotFlooded) {
  ScriptedCluster cluster;
  cluster.Kill(2);
  cluster.Run(Millis(100));
  EXPECT_EQ(PutMany(cluster, "k", 10, 1, "v", {2}), 10);
  cluster.Run(Seconds(3));
  cluster.Start(2);
  cluster.node(2).SetDiskFull(true);
  cluster.Run(Seconds(10));
  EXPECT_EQ(cluster.HintsHeld(), 10u);
  for (const auto& [row_key, times] : cluster.deliveries()) EXPECT_LE(times, 21) << "twice a second at most";
  cluster.node(2).SetDiskFull(false);
  cluster.Quiesce();
}

// Decommission is not there yet; what it will wait for is: that nothing is held any more. Refused hints do
// not keep it waiting.
TEST(CasesC, Case31_WaitingForHintsEndsThoughTheLimitRefusedSome) {
  ScriptedCluster cluster({.limits = {.hint_bytes = 500}});
  cluster.Kill(2);
  cluster.Run(Millis(100));
  EXPECT_EQ(PutMany(cluster, "k", 200, 10, "v", {2}), 200);
  cluster.Run(Seconds(3));
  EXPECT_GT(HintsRefused(cluster), 0u);
  EXPECT_GT(cluster.HintsHeld(), 0u);
  EXPECT_LT(cluster.HintsHeld(), 200u);
  cluster.Start(2);
  EXPECT_TRUE(cluster.RunUntil([&] { return cluster.HintsHeld() == 0; }, Seconds(5)));
  cluster.Quiesce();  // anti-entropy has done what the refused hints could not
  EXPECT_EQ(cluster.RowsOnDisk(2), 200u);
}

// Hints of which the target leaves are for nobody any more; what they held goes to who is given its rows.
TEST(CasesC, Case31_HintsDoNotOutliveTheLeavingOfTheirTarget) {
  for (const bool refused : {false, true}) {
    ScriptedCluster cluster({.nodes = 5, .limits = {.hint_bytes = refused ? 2000u : 16u << 20}});
    cluster.Kill(4);
    cluster.Run(Millis(100));
    constexpr int kWrites = 400;
    EXPECT_EQ(PutMany(cluster, "k", kWrites, 10, "v", {4}), kWrites);
    cluster.Run(Seconds(3));
    EXPECT_EQ(HintsRefused(cluster) > 0, refused);
    EXPECT_GT(cluster.HintsHeld(), 0u);
    cluster.BeginMove(cluster.WithMembers({0, 1, 2, 3}));
    ASSERT_TRUE(cluster.RunUntilMoved());
    EXPECT_TRUE(cluster.RunUntil([&] { return cluster.HintsHeld() == 0; }, Seconds(10)));
    cluster.Quiesce();
    for (int i = 0; i < kWrites; ++i)
      EXPECT_EQ(cluster.Values(0, "k" + std::to_string(i)), std::vector<std::string>{"v"}) << i;
  }
}

TEST(CasesC, Case32_WritesWithAQuorumSucceedWhileHintsAreRefused) {
  ScriptedCluster cluster({.nodes = 5, .limits = {.hint_bytes = 2000}});
  cluster.Kill(4);
  cluster.Run(Millis(100));
  constexpr int kWrites = 20'000;
  EXPECT_EQ(PutMany(cluster, "k", kWrites, 2000, "v", {4}), kWrites);
  EXPECT_GT(HintsRefused(cluster), 1000u);
  cluster.Start(4);
  cluster.Quiesce();
}

// A node that recovered gets its hints at a limited rate, and clients meanwhile get what they got before.
TEST(CasesC, Case34_HintsAreReplayedAtALimitedRate) {
  ScriptedCluster cluster;
  cluster.Kill(2);
  cluster.Run(Millis(100));
  constexpr int kHints = 5000;
  EXPECT_EQ(PutMany(cluster, "k", kHints, 200, "v", {2}), kHints);
  cluster.Run(Seconds(3));
  EXPECT_EQ(cluster.HintsHeld(), static_cast<uint64_t>(kHints));

  // Per sender: the times of its last deliveries. No 20 ms have more than a page.
  std::map<size_t, std::deque<Micros>> sent;
  std::map<size_t, size_t> unconfirmed;
  size_t most = 0;
  size_t most_unconfirmed = 0;
  cluster.SetFilter([&](size_t from, size_t to, const Message& message) {
    if (KindOf(message.op) == OpKind::kHandoff && std::holds_alternative<peer::StoreRow>(message.body)) {
      std::deque<Micros>& times = sent[from];
      times.push_back(cluster.now());
      while (cluster.now() - times.front() >= Millis(20)) times.pop_front();
      most = std::max(most, times.size());
      most_unconfirmed = std::max(most_unconfirmed, ++unconfirmed[from]);
    }
    if (KindOf(message.op) == OpKind::kHandoff && std::holds_alternative<peer::StoreReply>(message.body))
      --unconfirmed[to];
    return true;
  });
  cluster.Start(2);
  int foreground = 0;
  while (cluster.HintsHeld() > 0 && foreground < 5000) {
    const std::string key = "k" + std::to_string(foreground++);
    const Micros asked = cluster.now();
    EXPECT_EQ(cluster.Values(0, key, {ReplicaCount::How::kQuorum, 0}), std::vector<std::string>{"v"});
    EXPECT_LE(cluster.now() - asked, Millis(10)) << "of simulated time";
  }
  EXPECT_GT(foreground, 50) << "the replay took no time";
  EXPECT_EQ(cluster.HintsHeld(), 0u);
  EXPECT_EQ(most, 128u);
  EXPECT_LE(most_unconfirmed, 128u) << "a page is confirmed before the next is sent";
  cluster.Quiesce();
}

}  // namespace
}  // namespace gyre::cases
