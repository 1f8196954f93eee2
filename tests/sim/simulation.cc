// One simulation from its seed, and many of them.
#include "tests/sim/simulation.h"

#include <cstdio>

#include "server/core/coordinator_ops.h"
#include "server/core/describe.h"
#include "storage/format/row_key.h"
#include "tests/sim/clients.h"
#include "tests/sim/cluster.h"

namespace gyre::sim {
namespace {

constexpr Micros kFaults = Seconds(20);
constexpr Micros kFaultsLong = Seconds(60);  // so that stable cuts rise among them
constexpr Micros kConverges = Seconds(30);   // in which anti-entropy makes all replicas equal
constexpr Micros kCalm = Seconds(6);  // longer than any timeout of a client, and than any message is late

void CheckConverged(World& world, Cluster& cluster, const History& history) {
  for (const Key& key : history.Keys()) {
    if (!world.ok()) return;
    const KeyspaceSpec& keyspace = **FindKeyspace(cluster.view(), key.keyspace);
    cluster.invariants().Converged(MakeRowKey(keyspace.id, TokenOf(key.name).value, key.name),
                                   cluster.ReplicasOf(keyspace.name, key.name));
  }
  for (SimNode* node : cluster.Living()) {
    if (!world.ok()) return;
    cluster.invariants().SumsAreRight(*node);
    if (node->lane().node().exchange().filling()) {
      world.Violated(node->name() + " is still filling although all nodes are up");
    }
    if (!node->lane().node().replica().hints().empty()) {
      world.Violated(node->name() + " still counts hints although all nodes are up");
    }
    std::string left;
    (void)node->engine().Scan(Table::kHints, {}, [&](std::string_view key, std::string_view) {
      left = key;
      return false;
    });
    if (!left.empty()) world.Violated(node->name() + " still holds a hint although all nodes are up");
  }
}

// What a stable cut lets go is gone from all replicas, and within a time that is bounded by how far the
// clocks had jumped.
void AwaitCollection(World& world, Cluster& cluster) {
  constexpr Micros kEach = Seconds(10);
  constexpr int kMost = 90;
  std::string left;
  for (int i = 0; i < kMost && world.ok(); ++i) {
    left.clear();
    for (SimNode* node : cluster.Members()) {
      (void)node->engine().Scan(Table::kCollect, {}, [&](std::string_view key, std::string_view) {
        std::string_view row_key;
        left = node->name() + " " +
               (ParseCollectKey(key, row_key) ? DescribeRowKey(std::string(row_key)) : std::string(key));
        return false;
      });
    }
    if (left.empty()) break;
    world.RunUntil(world.now() + kEach);
  }
  if (!left.empty()) world.Violated("what is deleted or expired is never collected: " + left);
  for (SimNode* node : cluster.Members()) {
    if (!world.ok()) return;
    const absl::Status saved = node->store().SaveSums();
    if (!saved.ok()) world.Violated(node->name() + " cannot save its sums: " + saved.ToString());
    while (node->store().RecountSome(1'000'000)) {
    }
    if (node->store().collectible() != 0) {
      world.Violated(node->name() + " counts rows to be collected, but there are none");
    }
  }
}

// Whatever change was under way comes to its end.
void AwaitSettled(World& world, Cluster& cluster) {
  constexpr Micros kEach = Seconds(1);
  constexpr int kMost = 120;
  for (int i = 0; i < kMost && world.ok(); ++i) {
    if (cluster.Unsettled().empty()) return;
    world.RunUntil(world.now() + kEach);
  }
  if (world.ok()) world.Violated("the layouts do not settle: " + cluster.Unsettled());
}

void CountHints(World& world, Cluster& cluster) {
  for (SimNode* each : cluster.Living()) {
    for (const auto& [node, delivered] : each->lane().node().replica().hints_delivered())
      world.Add(Count::kHints, delivered);
  }
}

uint64_t RecordsSent(Cluster& cluster) {
  uint64_t sent = 0;
  for (SimNode* node : cluster.Living()) sent += node->lane().node().exchange().counters().records_sent;
  return sent;
}

void Play(World& world, const Options& options) {
  Cluster cluster(world, options.nodes);
  Clients clients(world, cluster, 2 + world.random().Below(4));
  const Micros faults = world.random().Chance(0.2) ? kFaultsLong : kFaults;
  clients.Begin(faults);
  cluster.OnDiskLost([&] { clients.DiskLost(); });
  cluster.BeginFaults(faults);
  world.At(world.random().Between(Seconds(5), Seconds(15)), [&] {
    cluster.AddKeyspace({.name = "late", .r = {}, .w = {}}, [&] { clients.AddKeyspace("late"); });
  });
  world.RunUntil(faults);

  cluster.Heal();
  world.RunUntil(world.now() + kCalm);
  AwaitSettled(world, cluster);
  world.RunUntil(world.now() + kConverges);
  // Without a single read all replicas have become equal, and from then on nothing is sent any more.
  CheckConverged(world, cluster, clients.history());
  AwaitCollection(world, cluster);
  clients.AllExpired();
  CheckConverged(world, cluster, clients.history());
  const uint64_t sent = RecordsSent(cluster);
  world.RunUntil(world.now() + kConverges);
  if (world.ok() && RecordsSent(cluster) != sent) {
    world.Violated("anti-entropy sent records although all replicas were equal");
  }
  for (SimNode* node : cluster.Living()) {
    if (!world.ok() || node->lane().node().exchange().unequal() == 0) continue;
    world.Violated(node->name() + " holds its rows for unequal to those of another replica");
  }
  CountHints(world, cluster);
  const size_t keys = clients.history().Keys().size();
  size_t read = 0;
  if (world.ok()) clients.ReadAll(read);
  world.RunUntil(world.now() + kCalm);
  if (read < keys && world.ok()) {
    world.Violated("after all faults were over only " + std::to_string(read) + " of " + std::to_string(keys) +
                   " keys could be read from all their replicas");
  }
  if (world.ok()) CheckConverged(world, cluster, clients.history());
}

}  // namespace

Report Simulate(const Options& options) {
  World world(options.seed, options.trace);
  Play(world, options);
  return {world.violations(), world.counts(), world.now(), world.digest()};
}

void Batch::Run(const Options& options, bool twice) {
  Report report = Simulate(options);
  if (twice && report.violations.empty() && Simulate(options).digest != report.digest) {
    report.violations.push_back("played twice, it was not the same");
  }
  ++seeds;
  simulated = simulated + report.simulated;
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += report.counts[i];
  if (report.violations.empty()) return;
  failed.push_back(options.seed);
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(options.seed),
              report.violations.front().c_str());
}

void Batch::Add(const Batch& other) {
  seeds += other.seeds;
  failed.insert(failed.end(), other.failed.begin(), other.failed.end());
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  simulated = simulated + other.simulated;
}

std::string Batch::Emptiness() const {
  for (size_t i = 0; i < counts.size(); ++i) {
    // Every kind must have come up about once in two seeds.
    if (counts[i] * 2 < seeds)
      return "too little happened: " + std::to_string(counts[i]) + " " + kCountNames[i];
  }
  const uint64_t ok = counts[static_cast<size_t>(Count::kOk)];
  if (ok < seeds * 100) return "too little happened: only " + std::to_string(ok) + " calls were good";
  return {};
}

std::string Batch::Summary() const {
  std::string text = std::to_string(seeds) + " seeds, " + std::to_string(simulated.value / 60'000'000) +
                     " simulated minutes, " + std::to_string(failed.size()) + " with violations;";
  for (size_t i = 0; i < counts.size(); ++i)
    text += " " + std::to_string(counts[i]) + " " + kCountNames[i] + ",";
  text.back() = '.';
  return text;
}

}  // namespace gyre::sim
