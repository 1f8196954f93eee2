// Prints how schemes of placement compare, and how even the two allocators of the ring are: the tables that
// ring/README.md quotes.
//
// Usage: placement [--nodes-max 1000]
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/placement_study.h"
#include "tests/bench/placements.h"
#include "tests/ring/balance.h"

namespace gyre {
namespace {

constexpr size_t kReplicas = 3;

// Of the processor, so that others on the machine count less.
double SecondsSince(std::clock_t begun) { return static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC; }

double LookupNanoseconds(const Placed& placed, const std::vector<Token>& keys) {
  uint64_t sum = 0;  // so that no lookup can be left out
  const auto begun = std::clock();
  for (int round = 0; round < 10; ++round) {
    for (const Token key : keys) sum += placed.NodeOf(key).value;
  }
  const double seconds = SecondsSince(begun);
  if (sum == 0) std::abort();
  return 1e9 * seconds / (10 * static_cast<double>(keys.size()));
}

void ComparePlacements(size_t nodes) {
  const std::vector<Token> keys = PlacementKeys(200000);
  std::printf(
      "Placement of 200,000 keys on %zu nodes, one replica; a node comes, or one from the middle leaves.\n\n",
      nodes);
  std::printf(
      "| scheme | moved, one comes (ideal %.1f %%) | of it between stayers | moved, one leaves (%.1f %%) |"
      " of it between stayers | max/average | lookup ns | state bytes | clients need |\n",
      100.0 / static_cast<double>(nodes + 1), 100.0 / static_cast<double>(nodes));
  std::printf("|---|---:|---:|---:|---:|---:|---:|---:|---|\n");
  const NodeId newcomer = PlacementNodes(nodes + 1).back();
  const NodeId leaver = PlacementNodes(nodes)[nodes / 2];
  for (const PlacementScheme& scheme : PlacementSchemes()) {
    const auto placed = scheme.place(PlacementNodes(nodes));
    const Moves in = MovesOf(*placed, *placed->With(newcomer), newcomer, keys);
    const Moves out = MovesOf(*placed, *placed->Without(leaver), leaver, keys);
    std::printf("| %s | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.2f | %.0f | %zu | %s |\n",
                std::string(scheme.name).c_str(), 100 * in.all, 100 * in.between_stayers, 100 * out.all,
                100 * out.between_stayers, MaxToAverageOf(*placed, nodes, keys),
                LookupNanoseconds(*placed, keys), placed->state_bytes(), std::string(scheme.clients).c_str());
  }
  std::printf("\n");
}

const char* WeightsOf(const Fleet& fleet) { return fleet.mixed ? "1, 2, 3" : "equal"; }

using Allocate = std::vector<Member> (*)(const std::vector<Member>& before, std::vector<Member> after);

std::vector<Member> AllocateHashed(const std::vector<Member>&, std::vector<Member> after) {
  return Hashed(std::move(after));
}

std::vector<Member> AllocateBalanced(const std::vector<Member>& before, std::vector<Member> after) {
  return BalancedTokens(before, std::move(after), kReplicas);
}

struct AllocatorResult {
  Evenness all, more, fewer;
  Movement joining, leaving;
  double neighbours = 0;
  double all_ms = 0, one_ms = 0;
};

// All at once; then one comes, or one from the middle leaves.
AllocatorResult ResultOf(Allocate allocate, const Fleet& fleet) {
  AllocatorResult result;
  auto begun = std::clock();
  const std::vector<Member> members = allocate({}, MembersOf(fleet));
  result.all_ms = 1e3 * SecondsSince(begun);
  result.all = EvennessOf(members, kReplicas);
  result.neighbours = NeighboursOf(members, kReplicas);

  std::vector<Member> more = members;
  more.push_back(FleetMember(fleet, fleet.count));
  begun = std::clock();
  more = allocate(members, more);
  result.one_ms = 1e3 * SecondsSince(begun);
  result.more = EvennessOf(more, kReplicas);
  result.joining = MovementOf(members, more, kReplicas);

  std::vector<Member> fewer = members;
  fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(fleet.count / 2));
  fewer = allocate(members, fewer);
  result.fewer = EvennessOf(fewer, kReplicas);
  result.leaving = MovementOf(members, fewer, kReplicas);
  return result;
}

void CompareAllocators(size_t nodes_max) {
  std::printf(
      "Allocators, %zu replicas: `hashed` with 128 tokens for each weight / `balanced` with 16. Shares are "
      "the\n"
      "fullest node's: owned ones relative to the fair one by weight, replicated ones relative to the best\n"
      "possible one, whose own ratio to the fair one is `best`. Movement is relative to what must move.\n\n"
      "| nodes | zones | weights | best | owned | replicated | one comes | moved | one leaves | moved |"
      " neighbours | ms, all | ms, one comes |\n"
      "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
      kReplicas);
  for (const Fleet& fleet : Fleets({3, 5, 10, 50, 200, 1000})) {
    if (fleet.count > nodes_max) continue;
    const AllocatorResult h = ResultOf(AllocateHashed, fleet);
    const AllocatorResult b = ResultOf(AllocateBalanced, fleet);
    std::printf("| %zu | %zu | %s | %.2f ", fleet.count, fleet.zones, WeightsOf(fleet), b.all.best_to_fair);
    std::printf("| %.2f / %.2f | %.2f / %.3f ", h.all.owned, b.all.owned, h.all.to_best, b.all.to_best);
    std::printf("| %.2f / %.3f | %.2f / %.2f ", h.more.to_best, b.more.to_best, h.joining.relative(),
                b.joining.relative());
    std::printf("| %.2f / %.3f | %.2f / %.2f ", h.fewer.to_best, b.fewer.to_best, h.leaving.relative(),
                b.leaving.relative());
    std::printf("| %.0f / %.0f | %.1f / %.1f | %.1f / %.1f |\n", h.neighbours, b.neighbours, h.all_ms,
                b.all_ms, h.one_ms, b.one_ms);
  }
  std::printf("\n");
}

// What a walk met on its steps.
struct Steps {
  size_t count = 0;
  double worst_share = 0;
  size_t above = 0;  // steps that left a node more than 5 % above the best
  double worst_moved = 0;
  double sum_moved = 0;

  void Count(double share, double moved) {
    ++count;
    worst_share = std::max(worst_share, share);
    if (share > 1.0501) ++above;
    worst_moved = std::max(worst_moved, moved);
    sum_moved += moved;
  }
  double mean_moved() const { return sum_moved / static_cast<double>(count); }
};

// From 5 nodes one by one to 20, and back to 5 in an order that depends on the seed, as the ids do.
void Walk(Allocate allocate, const Fleet& fleet, uint64_t seed, Steps& up, Steps& down) {
  const auto member = [&](size_t i) {
    Member member = FleetMember(fleet, i);
    member.id = NodeId{TokenOf(std::to_string(seed) + '/' + std::to_string(i)).value};
    return member;
  };
  std::vector<Member> members;
  for (size_t i = 0; i < 5; ++i) members.push_back(member(i));
  members = allocate({}, members);
  const auto change = [&](std::vector<Member> after, Steps& steps) {
    after = allocate(members, std::move(after));
    steps.Count(EvennessOf(after, kReplicas).to_best, MovementOf(members, after, kReplicas).relative());
    members = std::move(after);
  };
  while (members.size() < 20) {
    std::vector<Member> more = members;
    more.push_back(member(members.size()));
    change(std::move(more), up);
  }
  while (members.size() > 5) {
    std::vector<Member> fewer = members;
    const uint64_t which = TokenOf(std::to_string(seed + 1000 * members.size())).value % members.size();
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(which));
    change(std::move(fewer), down);
  }
}

void WalkAll() {
  constexpr uint64_t kSeeds = 20;
  std::printf(
      "One by one from 5 nodes to 20 and, any of them, back to 5; %d times. The worst replicated share, how "
      "many\n"
      "steps of %d leave a node more than 5 %% above the best, and what moves, in the mean and at worst.\n\n"
      "| zones | weights | growing: worst | above 5 %% | moved | shrinking: worst | above 5 %% | moved |\n"
      "|---:|---|---:|---:|---:|---:|---:|---:|\n",
      static_cast<int>(kSeeds), static_cast<int>(15 * kSeeds));
  for (const size_t zones : {1, 2, 3, 6}) {
    for (const bool mixed : {false, true}) {
      const Fleet fleet{5, zones, mixed};
      Steps h_up, h_down, b_up, b_down;
      for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        Walk(AllocateHashed, fleet, seed, h_up, h_down);
        Walk(AllocateBalanced, fleet, seed, b_up, b_down);
      }
      std::printf("| %zu | %s ", zones, WeightsOf(fleet));
      for (const auto& [h, b] : {std::pair(h_up, b_up), std::pair(h_down, b_down)}) {
        std::printf("| %.2f / %.3f | %zu / %zu | %.2f, %.2f / %.2f, %.2f ", h.worst_share, b.worst_share,
                    h.above, b.above, h.mean_moved(), h.worst_moved, b.mean_moved(), b.worst_moved);
      }
      std::printf("|\n");
    }
  }
}

void Main(size_t nodes_max) {
  ComparePlacements(10);
  CompareAllocators(nodes_max);
  WalkAll();
}

}  // namespace
}  // namespace gyre

int main(int argc, char** argv) {
  size_t nodes_max = 1000;
  if (argc == 3 && std::string(argv[1]) == "--nodes-max") {
    nodes_max = static_cast<size_t>(std::atoi(argv[2]));
  } else if (argc != 1) {
    std::fprintf(stderr, "usage: placement [--nodes-max 1000]\n");
    return 2;
  }
  gyre::Main(nodes_max);
}
