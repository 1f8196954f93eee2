// Which layout changes of the members lead to, and what is refused.
#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/core/plans.h"

namespace gyre {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(WithMembers, AddsRemovesReplaces) {
  const Layout base = Four();
  const Layout added = *WithMembers(base, Adding(E));
  EXPECT_EQ(added.epoch, base.epoch + 1);
  EXPECT_EQ(added.base_digest, DigestOf(base));
  EXPECT_EQ(added.cluster_id, base.cluster_id);
  EXPECT_TRUE(CheckLayout(added).ok());
  ASSERT_EQ(added.members.size(), 5u);
  EXPECT_EQ(added.members[4].zone, "e");
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(added.members[i], base.members[i]);
  EXPECT_TRUE(added.moves());
  EXPECT_EQ(added.voters, base.voters) << "those who come may vote when the data has moved";
  EXPECT_THAT(added.removed, IsEmpty());

  const Layout removed = *WithMembers(base, Removing(B));
  EXPECT_EQ(removed.members.size(), 3u);
  EXPECT_THAT(removed.removed, ElementsAre(B));
  EXPECT_TRUE(removed.moves());
  EXPECT_EQ(removed.voters, base.voters);

  const Layout replaced = *WithMembers(base, Replacing(B, E, "b"));
  ASSERT_EQ(replaced.members.size(), 4u);
  EXPECT_EQ(replaced.members[3].id, E);
  EXPECT_EQ(replaced.members[3].zone, "b");
  EXPECT_EQ(replaced.members[3].tokens, base.members[1].tokens);
  EXPECT_THAT(replaced.removed, ElementsAre(B));
  EXPECT_TRUE(CheckLayout(replaced).ok());
}

TEST(WithMembers, WeightsZonesTokensReplicas) {
  const Layout base = Four();
  const Layout heavier = *WithMembers(base, {.weight = {{A, 3}}});
  EXPECT_EQ(heavier.members[0].weight, 3u);
  EXPECT_GT(heavier.members[0].tokens.size(), base.members[0].tokens.size());
  EXPECT_TRUE(heavier.moves());

  const Layout zoned = *WithMembers(base, {.zone = {{A, "b"}}});
  EXPECT_EQ(zoned.members[0].zone, "b");
  EXPECT_EQ(zoned.members[0].tokens, base.members[0].tokens);

  for (const uint32_t count : {1u, 7u, 500u, 4096u}) {
    const Layout tokens = *WithMembers(base, {.tokens = {{A, count}}});
    const std::vector<Token>& has = tokens.members[0].tokens;
    const std::vector<Token>& had = base.members[0].tokens;
    EXPECT_EQ(has.size(), count);
    EXPECT_TRUE(Ring::Build(tokens.members).ok());
    EXPECT_TRUE(count < had.size() ? std::ranges::includes(had, has) : std::ranges::includes(has, had))
        << "no more than must be changes hands";
  }

  const Layout fewer = *WithMembers(base, {.keyspace_n = {{"carts", 1}}});
  EXPECT_EQ(fewer.keyspaces[1].n, 1);
  EXPECT_EQ(fewer.members, base.members);
  EXPECT_TRUE(fewer.moves());

  // A newcomer's own word may be overruled by the same plan.
  MemberChanges changes = Adding(E);
  changes.weight[E] = 2;
  changes.zone[E] = "x";
  changes.tokens[E] = 10;
  const Layout all = *WithMembers(base, changes);
  EXPECT_EQ(all.members[4].weight, 2u);
  EXPECT_EQ(all.members[4].zone, "x");
  EXPECT_EQ(all.members[4].tokens.size(), 10u);
}

TEST(WithMembers, MovesNothingWhenNobodyGetsAnything) {
  Layout base = FirstLayout({{A, "", 1}, {B, "", 1}});
  base.fence = 0;
  const Layout zoned = *WithMembers(base, {.zone = {{A, "a"}}});
  EXPECT_FALSE(zoned.moves());
  EXPECT_EQ(zoned.fence, base.fence);
  const Layout wider = *WithMembers(base, {.keyspace_n = {{"default", 5}}});
  EXPECT_FALSE(wider.moves()) << "both nodes hold everything already";
  // Then those who are members choose the next one.
  Layout alone = FirstLayout({{A, "", 1}});
  EXPECT_TRUE(WithMembers(alone, Adding(B))->moves());
}

TEST(WithMembers, Refuses) {
  using Edit = std::function<void(MemberChanges&)>;
  Layout base = Four();
  base.removed = {X};
  const auto refused = [&](const Edit& edit) {
    MemberChanges changes;
    edit(changes);
    const absl::Status status = WithMembers(base, changes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const std::string a = "node 0000000000000001";
  EXPECT_THAT(refused([](auto&) {}), HasSubstr("changes nothing"));
  EXPECT_THAT(refused([](auto& c) { c.weight[A] = 1; }), HasSubstr("changes nothing"));
  EXPECT_THAT(refused([](auto& c) { c.add = {{A, "", 1}}; }), HasSubstr(a + " cannot be added"));
  EXPECT_THAT(refused([](auto& c) { c.add = {{X, "", 1}}; }), HasSubstr("was a member once"));
  EXPECT_THAT(refused([](auto& c) { c.add = {{NodeId{}, "", 1}}; }), HasSubstr("names no node"));
  EXPECT_THAT(refused([](auto& c) { c.add = {{E, "", 1}, {E, "", 1}}; }), HasSubstr("twice"));
  EXPECT_THAT(refused([](auto& c) { c.remove = {E}; }), HasSubstr("is no member"));
  EXPECT_THAT(refused([](auto& c) { c.remove = {A, A}; }), HasSubstr("twice"));
  EXPECT_THAT(refused([](auto& c) { c.remove = {A, B, C, D}; }), HasSubstr("last node"));
  EXPECT_THAT(refused([](auto& c) { c.replace = {{A, {B, "", 1}}}; }), HasSubstr("cannot be added"));
  EXPECT_THAT(refused([](auto& c) { c.replace = {{X, {E, "", 1}}}; }), HasSubstr("is no member"));
  EXPECT_THAT(refused([](auto& c) {
                c.remove = {A};
                c.replace = {{A, {E, "", 1}}};
              }),
              HasSubstr(a + " is to be removed or replaced twice"));
  EXPECT_THAT(refused([](auto& c) {
                c.add = {{E, "", 1}};
                c.replace = {{A, {E, "", 1}}};
              }),
              HasSubstr("added twice"));
  EXPECT_THAT(refused([](auto& c) {
                c.remove = {A};
                c.weight[A] = 2;
              }),
              HasSubstr("weight: " + a + " leaves"));
  EXPECT_THAT(refused([](auto& c) { c.weight[A] = 0; }), HasSubstr("weight: " + a));
  EXPECT_THAT(refused([](auto& c) { c.weight[A] = 1001; }), HasSubstr("1 to 1000"));
  EXPECT_THAT(refused([](auto& c) { c.add = {{E, "", 0}}; }), HasSubstr("weight 0"));
  EXPECT_THAT(refused([](auto& c) { c.weight[E] = 2; }), HasSubstr("is no member"));
  EXPECT_THAT(refused([](auto& c) { c.zone[A] = std::string(65, 'z'); }), HasSubstr("zone: "));
  EXPECT_THAT(refused([](auto& c) { c.tokens[A] = 0; }), HasSubstr("tokens: " + a));
  EXPECT_THAT(refused([](auto& c) { c.tokens[A] = 4097; }), HasSubstr("1 to 4096"));
  EXPECT_THAT(refused([](auto& c) { c.keyspace_n["default"] = 9; }), HasSubstr("keyspace 'default': n: 9"));
  EXPECT_THAT(refused([](auto& c) { c.keyspace_n["default"] = 0; }), HasSubstr("keyspace 'default': n: 0"));
  EXPECT_THAT(refused([](auto& c) { c.keyspace_n["none"] = 2; }), HasSubstr("no keyspace 'none'"));
  EXPECT_THAT(refused([](auto& c) {
                c.remove = {A};
                c.lost = {B};
              }),
              HasSubstr("cannot be given up"));

  base.keyspaces[0].w = {ReplicaCount::How::kCount, 3};
  EXPECT_THAT(refused([](auto& c) { c.keyspace_n["default"] = 2; }), HasSubstr("keyspace 'default': w: 3"));

  MemberChanges crowd;
  for (uint64_t id = 100; id < 103; ++id) crowd.add.push_back({NodeId{id}, "", 1000});
  EXPECT_THAT(WithMembers(Four(), crowd).status().message(), HasSubstr("by one plan"));
  for (uint64_t id = 103; id < 400; ++id) crowd.add.push_back({NodeId{id}, "", 1000});
  EXPECT_THAT(WithMembers(Four(), crowd).status().message(), HasSubstr("tokens: all nodes together"));

  Layout finishing = Four();
  finishing.voters.pop_back();
  EXPECT_EQ(WithMembers(finishing, Adding(E)).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(WithMembers, GivesUpWhoLeaves) {
  MemberChanges changes = {.remove = {A, B}, .lost = {A, B}};
  const Layout next = *WithMembers(Four(), changes);
  EXPECT_THAT(next.lost, ElementsAre(A, B));
  EXPECT_THAT(next.removed, ElementsAre(A, B));
  changes.lost = {};
  const Layout without = *WithMembers(Four(), changes);
  EXPECT_EQ(PlanHash(without), PlanHash(next)) << "who is given up is no part of the plan";
}

}  // namespace
}  // namespace gyre
