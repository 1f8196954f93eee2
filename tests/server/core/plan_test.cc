// Plans: what a change moves, from whom to whom, how even it is, and what may be lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "ring/ownership.h"
#include "ring/ring_diff.h"
#include "tests/server/core/plans.h"

namespace gyre {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::shared_ptr<const View> ViewOf(Layout layout) { return *MakeView(std::move(layout)); }

// All up, each row 100 bytes, and as many rows as the node's share of a million keys says.
ClusterStatistics Even(const View& view) {
  ClusterStatistics statistics;
  for (size_t i = 0; i < view.ring.members().size(); ++i) {
    NodeStatistics& node = statistics[view.ring.members()[i].id];
    node.up = true;
    for (const KeyspaceSpec& keyspace : view.layout.keyspaces) {
      const Share share = SharesOf(view.ring, static_cast<size_t>(keyspace.n))[i];
      const auto rows = static_cast<uint64_t>(1e6 * FractionOf(share.replicated));
      node.rows[keyspace.id] = {.rows = rows, .bytes = rows * 100};
    }
  }
  statistics[E].up = true;
  return statistics;
}

// As DiffRings has it: the tokens that change hands from one to the other, as a fraction of the ring.
std::map<std::pair<NodeId, NodeId>, double> Links(const Layout& before, const Layout& after) {
  std::map<std::pair<NodeId, NodeId>, double> links;
  const auto was = ViewOf(before);
  const auto is = ViewOf(after);
  for (size_t i = 0; i < before.keyspaces.size(); ++i) {
    for (const RingChange& change : DiffRings({was->ring, static_cast<size_t>(before.keyspaces[i].n)},
                                              {is->ring, static_cast<size_t>(after.keyspaces[i].n)})) {
      for (const Replacement& each : change.replacements) {
        if (each.newcomer) links[{each.leaver, each.newcomer}] += FractionOf(change.width());
      }
    }
  }
  return links;
}

TEST(Plan, ANewcomerAloneIsMovedTo) {
  const auto base = ViewOf(Four());
  const Plan plan = *MakePlan(*base, Adding(E), Even(*base));
  EXPECT_EQ(plan.base_epoch, base->layout.epoch);
  EXPECT_EQ(plan.base_digest, base->digest);
  EXPECT_EQ(plan.next, *WithMembers(base->layout, Adding(E)));
  ASSERT_EQ(plan.moves.size(), 4u);
  const auto links = Links(base->layout, plan.next);
  double rows = 0;
  for (const Plan::Move& move : plan.moves) {
    EXPECT_EQ(move.to, E);
    EXPECT_GT(move.ranges, 0u);
    EXPECT_NEAR(static_cast<double>(move.rows.rows), 1e6 * links.at({move.from, E}), 10);
    EXPECT_NEAR(static_cast<double>(move.rows.bytes), 1e8 * links.at({move.from, E}), 1000);
    rows += static_cast<double>(move.rows.rows);
  }
  const auto next = ViewOf(plan.next);
  const double gets =
      FractionOf(SharesOf(next->ring, 3)[4].replicated + SharesOf(next->ring, 2)[4].replicated);
  EXPECT_NEAR(rows, 1e6 * gets, 100) << "all that it gets, and nothing else";
  EXPECT_THAT(plan.warnings, IsEmpty());
  EXPECT_THAT(plan.loss, IsEmpty());
}

TEST(Plan, AReplacementMovesWhatTheOldOneHad) {
  const auto base = ViewOf(Four());
  const ClusterStatistics statistics = Even(*base);
  const Plan plan = *MakePlan(*base, Replacing(B, E, "b"), statistics);
  ASSERT_EQ(plan.moves.size(), 1u);
  EXPECT_EQ(plan.moves[0].from, B);
  EXPECT_EQ(plan.moves[0].to, E);
  const auto& had = statistics.at(B).rows;
  EXPECT_NEAR(static_cast<double>(plan.moves[0].rows.rows),
              static_cast<double>(had.at(1).rows + had.at(2).rows), 2);
  EXPECT_EQ(plan.before, plan.after);
  EXPECT_THAT(plan.warnings, IsEmpty());

  MemberChanges other = Replacing(B, E, "c");
  other.replace[0].by.weight = 4;
  const Plan warned = *MakePlan(*base, other, statistics);
  EXPECT_EQ(warned.next.members[3].weight, 1u) << "tokens and weight are the old one's";
  EXPECT_THAT(warned.warnings, ElementsAre(HasSubstr("in zone 'c'"), HasSubstr("its weight is 4")));
}

TEST(Plan, WhoLeavesGivesAll) {
  const auto base = ViewOf(Four());
  const ClusterStatistics statistics = Even(*base);
  const Plan plan = *MakePlan(*base, Removing(D), statistics);
  uint64_t rows = 0;
  for (const Plan::Move& move : plan.moves) {
    EXPECT_EQ(move.from, D);
    rows += move.rows.rows;
  }
  EXPECT_EQ(plan.moves.size(), 3u);
  const auto& had = statistics.at(D).rows;
  EXPECT_NEAR(static_cast<double>(rows), static_cast<double>(had.at(1).rows + had.at(2).rows), 5);

  // One that is down cannot give: the first of the others that can be asked does.
  ClusterStatistics without = statistics;
  without[D].up = false;
  const Plan down = *MakePlan(*base, Removing(D), without);
  uint64_t same_rows = 0;
  for (const Plan::Move& move : down.moves) {
    EXPECT_NE(move.from, D);
    EXPECT_NE(move.from, move.to);
    same_rows += move.rows.rows;
  }
  EXPECT_NEAR(static_cast<double>(same_rows), static_cast<double>(rows), 5);
  EXPECT_THAT(down.leaving_down, ElementsAre(D));
  EXPECT_EQ(down.hash, plan.hash) << "it is the same plan, whoever is up";
}

TEST(Plan, ReplicasRaisedAndLowered) {
  const auto base = ViewOf(Four());
  const ClusterStatistics statistics = Even(*base);
  const Plan raised = *MakePlan(*base, {.keyspace_n = {{"carts", 3}}}, statistics);
  uint64_t rows = 0;
  for (const Plan::Move& move : raised.moves) rows += move.rows.rows;
  EXPECT_NEAR(static_cast<double>(rows), 1e6, 10) << "one more copy of each of a million keys";
  const Plan lowered = *MakePlan(*base, {.keyspace_n = {{"carts", 1}}}, statistics);
  EXPECT_THAT(lowered.moves, IsEmpty()) << "those who lose a range only drop it";
  EXPECT_TRUE(lowered.next.moves());
}

TEST(Plan, EstimatesWhatOneWhoSaysNothingHolds) {
  const auto base = ViewOf(Four());
  ClusterStatistics statistics = Even(*base);
  const Plan known = *MakePlan(*base, Removing(D), statistics);
  statistics[D].rows.clear();
  const Plan unknown = *MakePlan(*base, Removing(D), statistics);
  ASSERT_EQ(known.moves.size(), unknown.moves.size());
  for (size_t i = 0; i < known.moves.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(known.moves[i].rows.rows),
                static_cast<double>(unknown.moves[i].rows.rows), 10);
  }
  EXPECT_THAT(unknown.warnings, ElementsAre(HasSubstr("has not said how many keys")));
  const Plan none = *MakePlan(*base, Adding(E), {});
  EXPECT_EQ(none.moves[0].rows, RowTotals{});
}

TEST(Plan, HashIsOverBaseAndArcs) {
  const auto base = ViewOf(Four());
  const Plan plan = *MakePlan(*base, Adding(E), Even(*base));
  EXPECT_EQ(plan.hash, MakePlan(*base, Adding(E), {})->hash) << "estimates are not hashed";
  const Layout other = *WithKeyspaceChanged(base->layout, base->layout.keyspaces[0]);
  std::set<uint64_t> hashes = {plan.hash, MakePlan(*ViewOf(other), Adding(E), {})->hash};
  const MemberChanges others[] = {Adding(E, "f"),      Adding(E, "e", 2),    Adding(X),
                                  Removing(A),         {.weight = {{A, 2}}}, {.keyspace_n = {{"carts", 3}}},
                                  {.tokens = {{A, 5}}}};
  for (const MemberChanges& changes : others) hashes.insert(MakePlan(*base, changes, {})->hash);
  EXPECT_EQ(hashes.size(), 2 + std::size(others));
  // The order in which changes are named is nobody's business.
  MemberChanges one = {.remove = {A, B}};
  MemberChanges two = {.remove = {B, A}};
  EXPECT_EQ(MakePlan(*base, one, {})->hash, MakePlan(*base, two, {})->hash);
}

TEST(Plan, BalanceIsTheLargestShareByWeight) {
  const auto base = ViewOf(Four());
  const Plan plan = *MakePlan(*base, {.weight = {{A, 3}}, .tokens = {{A, 128}}}, Even(*base));
  EXPECT_GE(plan.before.owned, 1);
  EXPECT_LT(plan.before.owned, 1.5);
  EXPECT_GE(plan.before.replicated, 1);
  EXPECT_LE(plan.before.replicated, plan.before.owned);
  EXPECT_NEAR(plan.after.owned, plan.before.owned * 6 / 4, .3) << "the others own twice what they should";
}

TEST(Plan, WarnsOfWhatFallsShort) {
  const auto base = ViewOf(FirstLayout({{A, "a", 1}, {B, "b", 1}, {C, "c", 1}}));
  ClusterStatistics statistics = Even(*base);
  EXPECT_THAT(MakePlan(*base, Removing(C), statistics)->warnings,
              ElementsAre(HasSubstr("keyspace 'default' wants 3 replicas, and there would be only 2 nodes")));
  EXPECT_THAT(MakePlan(*base, {.zone = {{A, "b"}}}, statistics)->warnings,
              ElementsAre(HasSubstr("only 2 zones")));
  statistics[B].up = false;
  statistics[C].filling = true;
  statistics[A].dropping = true;
  statistics[X].dropping = true;  // no member: nothing is estimated by it
  EXPECT_THAT(MakePlan(*base, Adding(X), statistics)->warnings,
              ElementsAre(HasSubstr("not heard of"), HasSubstr("is down and stays"),
                          HasSubstr("still filling"), HasSubstr("may still hold copies")));
}

TEST(Plan, ShowsWhatMayBeLost) {
  const auto base = ViewOf(FirstLayout({{A, "", 1}, {B, "", 1}, {C, "", 1}}));
  ClusterStatistics statistics = Even(*base);
  statistics[X].up = true;
  statistics[C].up = false;
  EXPECT_THAT(MakePlan(*base, Replacing(C, X, ""), statistics)->loss, IsEmpty())
      << "two of three replicas can be read";
  EXPECT_THAT(MakePlan(*base, Replacing(C, X, ""), statistics)->leaving_down, ElementsAre(C));
  statistics[B].up = false;
  EXPECT_THAT(MakePlan(*base, Adding(X), statistics)->loss, IsEmpty()) << "nobody leaves: it waits";
  const Plan plan = *MakePlan(*base, Replacing(C, X, ""), statistics);
  ASSERT_EQ(plan.loss.size(), 1u);
  EXPECT_THAT(plan.loss[0],
              HasSubstr("keyspace 'default': 100 % of the ring, about 1000000 keys, would be left "
                        "with fewer than the 2 readable replicas needed"));
  EXPECT_THAT(plan.loss[0], HasSubstr("0000000000000002, 0000000000000003"));

  // A write that one replica acknowledged may be on that one only.
  Layout one = base->layout;
  one.keyspaces[0].w.how = ReplicaCount::How::kOne;
  statistics[B].up = true;
  EXPECT_EQ(MakePlan(*ViewOf(one), Replacing(C, X, ""), statistics)->loss.size(), 1u);
  // One that may be asked alone was right to be asked.
  one.keyspaces[0].w.how = ReplicaCount::How::kAll;
  one.keyspaces[0].r.how = ReplicaCount::How::kOne;
  EXPECT_EQ(MakePlan(*ViewOf(one), Replacing(C, X, ""), statistics)->loss.size(), 1u);
  one.keyspaces[0].r.how = ReplicaCount::How::kQuorum;
  // What every replica acknowledged is on all.
  one.keyspaces[0].w.how = ReplicaCount::How::kAll;
  EXPECT_THAT(MakePlan(*ViewOf(one), Replacing(C, X, ""), statistics)->loss, IsEmpty());
}

}  // namespace
}  // namespace gyre
