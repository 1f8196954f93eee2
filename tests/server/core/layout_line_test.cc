// What may follow what in the line of layouts.
#include "server/core/layout_line.h"

#include <functional>
#include <gtest/gtest.h>
#include <vector>

namespace gyre {
namespace {

// Three members, and not the first of its line.
Layout Later(const std::function<void(Layout&)>& edit) {
  Layout layout = FirstLayout({{NodeId{3}, "c", 1}, {NodeId{1}, "a", 1}, {NodeId{2}, "b", 2}});
  layout.epoch = 5;
  layout.base_digest = 77;
  edit(layout);
  return layout;
}

TEST(Successor, AChangeWithoutMovementEndsWhatWasSaidOfOne) {
  const Layout base = Later([](Layout& l) {
    l.fence = l.epoch;
    l.abort = true;
    l.lost = {NodeId{8}};
    l.removed = {NodeId{9}};
  });
  const Layout next = *WithKeyspace(base, {.name = "carts", .r = {}, .w = {}});
  EXPECT_FALSE(next.moves());
  EXPECT_EQ(next.fence, base.fence);
  EXPECT_FALSE(next.abort);
  EXPECT_TRUE(next.lost.empty());
  EXPECT_EQ(next.removed, base.removed);
  EXPECT_TRUE(CheckSuccessor(base, next).ok());
}

// What may follow a layout of three members and voters, and what may not.
TEST(Successor, IsHeldToTheRulesOfTheLine) {
  const Layout base = Later([](Layout& l) {
    l.fence = 4;
    l.removed = {NodeId{9}};
  });
  const auto check = [&](const Layout& of, const std::function<void(Layout&)>& edit) {
    Layout next = of;
    next.epoch = of.epoch + 1;
    next.base_digest = DigestOf(of);
    edit(next);
    return CheckSuccessor(of, next).ok();
  };
  const auto moving = [](Layout& l) {
    l.fence = l.epoch;
    l.members.pop_back();
    l.removed = {NodeId{3}, NodeId{9}};
  };
  EXPECT_TRUE(check(base, [](Layout&) {}));
  EXPECT_TRUE(check(base, moving));
  const auto moving_and = [&](const std::function<void(Layout&)>& edit) {
    return check(base, [&](Layout& l) {
      moving(l);
      edit(l);
    });
  };
  EXPECT_TRUE(moving_and([](Layout& l) { l.lost = {NodeId{3}}; }));
  EXPECT_FALSE(moving_and([](Layout& l) { l.lost = {NodeId{7}}; })) << "no member";
  EXPECT_FALSE(moving_and([](Layout& l) { l.voters.pop_back(); })) << "the members of now have the say";
  EXPECT_FALSE(moving_and([](Layout& l) { l.removed = {NodeId{3}}; })) << "forgets who left";
  EXPECT_FALSE(moving_and([](Layout& l) { l.abort = true; })) << "nothing to go back from";
  EXPECT_FALSE(check(base, [](Layout& l) { ++l.epoch; }));
  EXPECT_FALSE(check(base, [](Layout& l) { ++l.base_digest; }));
  EXPECT_FALSE(check(base, [](Layout& l) { ++l.cluster_id; }));
  EXPECT_FALSE(check(base, [](Layout& l) { l.fence = 3; }));
  EXPECT_FALSE(check(base, [](Layout& l) { l.voters = {NodeId{1}}; }));
  EXPECT_FALSE(check(base, [](Layout& l) { l.removed.clear(); }));
  EXPECT_FALSE(check(base, [](Layout& l) { l.keyspace_ids_used = 0; }));

  Layout unfinished = base;
  unfinished.voters = {NodeId{1}, NodeId{2}};
  EXPECT_FALSE(check(unfinished, moving)) << "the change before it is not finished";
  EXPECT_TRUE(check(unfinished, [](Layout& l) { l.voters = {NodeId{1}, NodeId{2}, NodeId{3}}; }));
  EXPECT_EQ(Finished(unfinished, false)->voters.size(), 3u);
  EXPECT_EQ(Finished(base, false).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(CheckSuccessor(base, *Finished(base, true)).ok());
}

TEST(Successor, AnAbortIsThePlacementOfBefore) {
  const Layout before = Later([](Layout& l) {
    l.fence = 2;
    l.removed = {NodeId{9}};
  });
  Layout aborted = before;
  aborted.epoch = before.epoch + 1;
  aborted.base_digest = DigestOf(before);
  aborted.fence = aborted.epoch;
  aborted.members[2].id = NodeId{4};
  aborted.removed = {NodeId{3}, NodeId{9}};
  aborted.lost = {NodeId{3}};
  aborted.keyspaces[0].n = 2;
  const Layout abort = AbortOf(aborted, before, {NodeId{4}});
  EXPECT_EQ(abort.epoch, 7u);
  EXPECT_EQ(abort.base_digest, DigestOf(aborted));
  EXPECT_EQ(abort.members, before.members);
  EXPECT_EQ(abort.keyspaces, before.keyspaces);
  EXPECT_EQ(abort.voters, aborted.voters);
  EXPECT_EQ(abort.removed, before.removed) << "who was to leave is a member again";
  EXPECT_TRUE(abort.abort);
  EXPECT_TRUE(abort.moves());
  EXPECT_TRUE(IsAbortOf(aborted, before, abort));
  for (const auto& edit : std::vector<std::function<void(Layout&)>>{
           [](Layout& l) { ++l.members[0].weight; },
           [](Layout& l) { l.keyspaces[0].n = 2; },
           [](Layout& l) { l.removed.clear(); },
           [](Layout& l) { l.abort = false; },
           [](Layout& l) { l.lost = {NodeId{8}}; },
           [](Layout& l) { l.lost = {NodeId{2}}; },
       }) {
    Layout other = abort;
    edit(other);
    EXPECT_FALSE(IsAbortOf(aborted, before, other));
  }
  EXPECT_FALSE(IsAbortOf(abort, aborted, AbortOf(aborted, before, {}))) << "not back and forth";
}

}  // namespace
}  // namespace gyre
