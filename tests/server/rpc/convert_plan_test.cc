// Plans on the wire: nodes by the beginning of their ids, newcomers as they say of themselves, and back.
#include "server/rpc/convert_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gyre {
namespace {

using testing::HasSubstr;

constexpr NodeId A{0xa100000000000000};
constexpr NodeId B{0xb200000000000000};
constexpr NodeId C{0xb210000000000000};  // announced only

class ConvertPlanTest : public testing::Test {
 protected:
  ConvertPlanTest() {
    known_[A] = {.id = A, .zone = "a", .weight = 1};
    known_[C] = {.id = C, .zone = "c", .weight = 5};
  }
  absl::StatusOr<MemberChanges> Convert() { return ToMemberChanges(*view_, known_, wire_); }
  std::string Why() {
    const absl::Status status = Convert().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    wire_.Clear();
    return std::string(status.message());
  }

  std::shared_ptr<const View> view_ = *MakeView(FirstLayout({{A, "a", 1}, {B, "b", 1}}));
  ClusterState::Known known_;
  v1::MemberChanges wire_;
};

TEST_F(ConvertPlanTest, NodesByTheBeginningOfTheirIds) {
  wire_.add_add("b21");
  wire_.add_remove("b200000000000000");
  auto& replace = *wire_.add_replace();
  replace.set_old("a");
  replace.set_by("b21");
  auto& weight = *wire_.add_weight();
  weight.set_node("b20");
  weight.set_number(7);
  auto& zone = *wire_.add_zone();
  zone.set_node("a1");
  zone.set_zone("z");
  auto& tokens = *wire_.add_tokens();
  tokens.set_node("a");
  tokens.set_number(16);
  auto& n = *wire_.add_n();
  n.set_keyspace("default");
  n.set_n(2);
  const MemberChanges expected = {.add = {{C, "c", 5}},
                                  .remove = {B},
                                  .replace = {{A, {C, "c", 5}}},
                                  .weight = {{B, 7}},
                                  .zone = {{A, "z"}},
                                  .tokens = {{A, 16}},
                                  .keyspace_n = {{"default", 2}}};
  const auto changes = Convert();
  ASSERT_TRUE(changes.ok()) << changes.status();
  EXPECT_EQ(*changes, expected);

  // Back, with whole ids, it means the same.
  wire_.Clear();
  FromMemberChanges(expected, wire_);
  EXPECT_EQ(wire_.add(0), "b210000000000000");
  EXPECT_EQ(*Convert(), expected);
}

TEST_F(ConvertPlanTest, Refuses) {
  wire_.add_add("c");
  EXPECT_THAT(Why(), HasSubstr("there is no node 'c'"));
  wire_.add_add("");
  EXPECT_THAT(Why(), HasSubstr("there is no node ''"));
  wire_.add_add("b2000000000000000");
  EXPECT_THAT(Why(), HasSubstr("there is no node"));
  wire_.add_remove("b2");
  EXPECT_THAT(Why(), HasSubstr("could be b200000000000000 or b210000000000000"));
  for (const char* name : {"b20", "b200"}) {
    auto& weight = *wire_.add_weight();
    weight.set_node(name);
    weight.set_number(2);
  }
  EXPECT_THAT(Why(), HasSubstr("weight of node b200000000000000 is given twice"));
  wire_.add_n()->set_n(9);
  EXPECT_THAT(Why(), HasSubstr("n: 9"));
  wire_.add_n()->set_n(1);
  wire_.add_n()->set_n(2);
  EXPECT_THAT(Why(), HasSubstr("given twice"));
}

TEST_F(ConvertPlanTest, ThePlanItself) {
  const Plan plan = {.base_epoch = 3,
                     .base_digest = 4,
                     .hash = 5,
                     .changes = {.add = {{C, "c", 5}}},
                     .moves = {{.from = A, .to = C, .ranges = 6, .rows = {.rows = 7, .bytes = 8}}},
                     .before = {1.5, 1.25},
                     .after = {1, 2},
                     .warnings = {"w"},
                     .loss = {"l"}};
  v1::PlanReply reply;
  FromPlan(plan, reply);
  EXPECT_EQ(reply.base_epoch(), 3u);
  EXPECT_EQ(reply.base_digest(), 4u);
  EXPECT_EQ(reply.hash(), 5u);
  EXPECT_EQ(reply.changes().add(0), ToString(C));
  EXPECT_EQ(reply.moves(0).from(), ToString(A));
  EXPECT_EQ(reply.moves(0).to(), ToString(C));
  EXPECT_EQ(reply.moves(0).ranges(), 6u);
  EXPECT_EQ(reply.moves(0).keys(), 7u);
  EXPECT_EQ(reply.moves(0).bytes(), 8u);
  EXPECT_EQ(reply.before().owned(), 1.5);
  EXPECT_EQ(reply.after().replicated(), 2);
  EXPECT_EQ(reply.warnings(0), "w");
  EXPECT_EQ(reply.loss(0), "l");
}

}  // namespace
}  // namespace gyre
