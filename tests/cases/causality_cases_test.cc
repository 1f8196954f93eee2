// Cases of section B, causality, clocks and siblings: each test is named by its case in README.md.
#include <absl/strings/match.h>

#include "storage/format/context_codec.h"
#include "tests/cases/scripted_cluster.h"

namespace gyre::cases {
namespace {

using Values = std::vector<std::string>;

constexpr int64_t kDayMs = 24 * 3600 * 1000;
constexpr int64_t kTenYearsMs = 3650 * kDayMs;

// Read, modify, write, both clients always between each other's steps, each through its own node.
TEST(CasesB, Case15_InterleavedWritersLeaveNoMoreSiblingsThanWriters) {
  ScriptedCluster cluster;
  std::set<std::string> written;
  for (int round = 0; round < 100; ++round) {
    std::vector<GetResult> seen;
    for (size_t client = 0; client < 2; ++client) {
      seen.push_back(cluster.Get(client, {.key = "k"}));
      ASSERT_LE(seen.back().values.size(), 2u) << "round " << round;
    }
    for (size_t client = 0; client < 2; ++client) {
      const std::string word = std::to_string(client) + "-" + std::to_string(round) + " ";
      std::set<std::string> words;
      for (const ReadValue& value : seen[client].values) {
        for (size_t at = 0, end; (end = value.value.find(' ', at)) != std::string::npos; at = end + 1)
          words.insert(value.value.substr(at, end + 1 - at));
      }
      words.insert(word);
      written.insert(word);
      std::string all;
      for (const std::string& each : words) all += each;
      cluster.Put(client, {.key = "k", .value = all, .context = seen[client].context});
    }
  }
  std::set<std::string> left;
  const Values values = cluster.Values(2, "k");
  EXPECT_LE(values.size(), 2u);
  for (const std::string& value : values) {
    for (size_t at = 0, end; (end = value.find(' ', at)) != std::string::npos; at = end + 1)
      left.insert(value.substr(at, end + 1 - at));
  }
  EXPECT_EQ(left, written) << "no update is lost";
}

// The same, but the writers go on with the contexts that their own puts returned, and never read.
TEST(CasesB, Case15_WritersThatNeverReadEachOtherLeaveOneSiblingEach) {
  ScriptedCluster cluster;
  std::string contexts[2] = {cluster.Get(0, {.key = "k"}).context, cluster.Get(1, {.key = "k"}).context};
  for (int round = 0; round < 100; ++round) {
    for (size_t client = 0; client < 2; ++client) {
      const std::string value = std::to_string(client) + "-" + std::to_string(round);
      contexts[client] =
          cluster.Put(client, {.key = "k", .value = value, .w = kAll, .context = contexts[client]});
      ASSERT_LE(cluster.OnDisk(client, "k").versions.size(), 2u);
    }
  }
  EXPECT_EQ(cluster.Values(2, "k"), (Values{"0-99", "1-99"}));
}

// Three coordinators whose clocks show the same moment write the same key at that moment. (That ids of nodes
// are unique is IdentityTest.Case19_NodesMadeAtTheSameMomentHaveDifferentIds.)
TEST(CasesB, Case19_NodesMintingInTheSameMillisecondNeverShareADot) {
  ScriptedCluster cluster;
  std::set<Dot> dots;
  std::set<uint64_t> counters;
  for (int round = 0; round < 30; ++round) {
    const std::string key = "k" + std::to_string(round);
    const std::string context = cluster.Get(0, {.key = key}).context;
    int answered = 0;
    for (size_t node = 0; node < 3; ++node) {
      cluster.AskLater(node, PutCall{.key = key, .value = std::to_string(node), .context = context},
                       [&](const CallResult& result) {
                         EXPECT_TRUE(result.status.ok()) << result.status;
                         ++answered;
                       });
    }
    ASSERT_TRUE(cluster.RunUntil([&] { return answered == 3; }));
    const GetResult all = cluster.Get(round % 3, {.key = key, .r = kAll});
    EXPECT_EQ(all.values.size(), 3u);
    for (const ReadValue& value : all.values) {
      EXPECT_TRUE(dots.insert(value.dot).second);
      counters.insert(value.dot.counter);
    }
  }
  EXPECT_LT(counters.size(), dots.size()) << "no two clocks showed the same";
  cluster.Quiesce();
  const uint64_t repairs = cluster.repairs();
  cluster.Run(Seconds(60));
  for (int round = 0; round < 30; ++round) cluster.Values(0, "k" + std::to_string(round));
  EXPECT_EQ(cluster.repairs(), repairs) << "repairs go on although all is equal";
}

// Each side of a partition holds a value that fits; what both together hold does not.
TEST(CasesB, Case21_SiblingsThatTogetherExceedTheLimitsStillConverge) {
  ScriptedCluster cluster({.limits = {.value_bytes = 700, .siblings = 1, .record_bytes = 1000}});
  const std::string context = cluster.Get(0, {.key = "k"}).context;
  cluster.Part({0});
  cluster.Run(Seconds(1));
  const std::string left(700, 'l');
  const std::string right(700, 'r');
  cluster.Put(0, {.key = "k", .value = left, .w = kOne, .context = context});
  cluster.Put(1, {.key = "k", .value = right, .context = context});
  cluster.Mend();
  cluster.Quiesce();
  for (size_t node = 0; node < 3; ++node) EXPECT_EQ(cluster.Values(node, "k"), (Values{left, right}));
  // Clients meet the limits, and a writer that has seen all gets out of it.
  const GetResult seen = cluster.Get(0, {.key = "k"});
  EXPECT_TRUE(absl::IsResourceExhausted(
      cluster.Ask(0, PutCall{.key = "k", .value = "third", .context = context}).status));
  cluster.Put(0, {.key = "k", .value = left, .context = seen.context});
  EXPECT_EQ(cluster.Values(2, "k"), Values{left});
}

TEST(CasesB, Case22_UnresolvedSiblingsEndAtALimitThatIsNamed) {
  ScriptedCluster cluster;
  const std::string nothing_seen = cluster.Get(0, {.key = "k"}).context;
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    const CallResult result = cluster.Ask(
        static_cast<size_t>(i % 3), PutCall{.key = "k", .value = std::to_string(i), .context = nothing_seen});
    if (result.status.ok()) continue;
    ++refused;
    ASSERT_TRUE(absl::IsResourceExhausted(result.status)) << result.status;
    ASSERT_TRUE(absl::StrContains(result.status.message(), "limits.siblings")) << result.status;
  }
  EXPECT_GT(refused, 9'900);
  for (size_t node = 0; node < 3; ++node) {
    EXPECT_LE(cluster.OnDisk(node, "k").versions.size(), 32u + 2u) << "a put at each node, at once";
    EXPECT_LE(cluster.node(node).Durable(cluster.RowKeyOf("k"))->size(), 4096u);
  }
  const GetResult seen = cluster.Get(1, {.key = "k"});
  cluster.Put(1, {.key = "k", .value = "resolved", .context = seen.context});
  EXPECT_EQ(cluster.Values(0, "k"), Values{"resolved"});
}

TEST(CasesB, Case22_BlindPutsOfOneWriterLeaveNoSiblings) {
  ScriptedCluster cluster;
  for (int i = 0; i < 10'000; ++i) cluster.Put(1, {.key = "k", .value = std::to_string(i)});
  EXPECT_EQ(cluster.Values(0, "k"), Values{"9999"});
}

TEST(CasesB, Case23_ACausalOverwriteWinsWhateverTheClocks) {
  for (const int64_t ahead_ms : {kDayMs, -kDayMs}) {
    for (const std::string keyspace : {"default", "lww"}) {
      ScriptedCluster cluster(
          {.keyspaces = {{.name = "lww", .r = {}, .w = {}, .conflict = ConflictRule::kLastWriteWins}}});
      cluster.node(0).JumpWallClock(ahead_ms);
      cluster.Put(0, {.keyspace = keyspace, .key = "k", .value = "A", .w = kAll});
      for (size_t writer = 1; writer < 3; ++writer) {
        const GetResult seen = cluster.Get(writer, {.keyspace = keyspace, .key = "k"});
        const std::string value = "B" + std::to_string(writer);
        cluster.Put(writer,
                    {.keyspace = keyspace, .key = "k", .value = value, .w = kAll, .context = seen.context});
        for (size_t node = 0; node < 3; ++node) {
          const GetResult got = cluster.Get(node, {.keyspace = keyspace, .key = "k", .r = kOne});
          ASSERT_EQ(got.values.size(), 1u) << keyspace << " " << ahead_ms;
          EXPECT_EQ(got.values[0].value, value) << keyspace << " " << ahead_ms;
        }
      }
      // A delete with what was seen holds as well.
      const GetResult seen = cluster.Get(2, {.keyspace = keyspace, .key = "k"});
      cluster.Delete(2, {.keyspace = keyspace, .key = "k", .w = kAll, .context = seen.context});
      cluster.Quiesce();
      for (size_t node = 0; node < 3; ++node)
        EXPECT_TRUE(cluster.Get(node, {.keyspace = keyspace, .key = "k"}).values.empty());
    }
  }
}

// What one far counter touches is this key alone: the node's other writes follow the clock.
TEST(CasesB, Case23_AWriteOverAFarCounterDoesNotSpreadIt) {
  ScriptedCluster cluster;
  cluster.node(0).JumpWallClock(kDayMs);
  cluster.Put(0, {.key = "far", .value = "A", .w = kAll});
  const GetResult seen = cluster.Get(1, {.key = "far"});
  cluster.Put(1, {.key = "far", .value = "B", .context = seen.context});
  cluster.Put(1, {.key = "other", .value = "now"});
  const uint64_t far = MillisOfCounter(cluster.OnDisk(1, "far").seen.Max());
  const uint64_t other = MillisOfCounter(cluster.OnDisk(1, "other").seen.Max());
  EXPECT_LT(other + kDayMs / 2, far);
}

TEST(CasesB, Case24_AClockThatJumpsAheadForAMomentLosesNothing) {
  ScriptedCluster cluster;
  constexpr int kKeys = 50;
  for (int i = 0; i < kKeys; ++i) {
    cluster.Put(1, {.key = "keep" + std::to_string(i), .value = "v", .w = kAll});
    cluster.Put(1, {.key = "ttl" + std::to_string(i), .value = "v", .w = kAll, .ttl_ms = 3600 * 1000});
  }
  cluster.node(0).JumpWallClock(kTenYearsMs);
  cluster.Run(Seconds(1));
  for (int i = 0; i < kKeys; ++i) {
    EXPECT_EQ(cluster.Values(0, "keep" + std::to_string(i)), Values{"v"}) << "what never expires is there";
    cluster.Values(0, "ttl" + std::to_string(i));  // whatever it shows, it must not do
    EXPECT_EQ(cluster.Values(1, "ttl" + std::to_string(i)), Values{"v"}) << "other nodes know the time";
  }
  cluster.Put(0, {.key = "then", .value = "v", .w = kAll, .ttl_ms = 3600 * 1000});
  cluster.Run(Seconds(1));
  cluster.node(0).JumpWallClock(-kTenYearsMs);
  cluster.Quiesce();
  for (int i = 0; i < kKeys; ++i) {
    for (size_t node = 0; node < 3; ++node) {
      EXPECT_EQ(cluster.Values(node, "keep" + std::to_string(i)), Values{"v"});
      EXPECT_EQ(cluster.Values(node, "ttl" + std::to_string(i)), Values{"v"}) << "nothing was purged";
    }
  }
  // What was written then can be written over and deleted now.
  cluster.Put(1, {.key = "then", .value = "new"});
  EXPECT_EQ(cluster.Values(2, "then"), Values{"new"});
  cluster.Delete(2, {.key = "then"});
  EXPECT_EQ(cluster.Values(0, "then"), Values{});
}

}  // namespace
}  // namespace gyre::cases
