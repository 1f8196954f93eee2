// A cluster of Memberships of which some are no members yet, and whose lanes do what they are allowed.
#pragma once

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "server/core/layout_line.h"
#include "tests/server/core/membership_cluster.h"

namespace gyre {

inline NodeId IdOf(int i) { return NodeId{static_cast<uint64_t>(i) + 1}; }

// Formed nodes, of which the first three are members, and others that are known.
struct Moving : MembershipCluster {
  explicit Moving(int strangers = 1, int members = 3) : MembershipCluster(1), members_(members) {
    for (int i = 0; i < members; ++i) Add(members, {"a0"});
    StartAll();
    Run(Seconds(4));
    for (int i = 0; i < strangers; ++i) Start(Add(members, {"a0"}));
    Run(Seconds(3));
    EXPECT_TRUE(Agreed());
  }

  LayoutChange::Members PlanAt(int i, MemberChanges changes) {
    const auto& view = (*this)[i].view();
    return {.changes = std::move(changes), .base_digest = view->digest, .base_epoch = view->layout.epoch};
  }
  static MemberChanges Adding(int i) {
    MemberChanges changes;
    changes.add.push_back({.node = IdOf(i), .zone = "zone" + std::to_string(i)});
    return changes;
  }
  static MemberChanges Removing(int i) {
    MemberChanges changes;
    changes.remove.push_back(IdOf(i));
    return changes;
  }
  static MemberChanges Replacing(int old, int by) {
    MemberChanges changes;
    changes.replace.push_back({IdOf(old), {.node = IdOf(by), .zone = "zone" + std::to_string(by)}});
    return changes;
  }
  // Applies it at node `i`; the answer.
  absl::Status Apply(int i, LayoutChange::What what) {
    const uint64_t ticket = Change(i, Seconds(4), std::move(what));
    EXPECT_TRUE(RunUntil(Seconds(5), [&] { return AnswerTo(ticket) != nullptr; }));
    return *AnswerTo(ticket);
  }
  absl::Status Apply(int i, MemberChanges changes) { return Apply(i, PlanAt(i, std::move(changes))); }

  // No lane does more than this from now on.
  void Allow(MoveStep step) {
    for (int i = 0; i < size(); ++i) node(i).lane_up_to = step;
  }
  template <typename Holds>
  bool AtAll(Holds holds) {
    for (int i = 0; i < size(); ++i) {
      if (up(i) && !holds((*this)[i])) return false;
    }
    return true;
  }
  // All nodes that are up know that all these have taken the step.
  bool AllKnow(const std::vector<int>& takers, MoveStep step) {
    return AtAll([&](const Membership& membership) {
      return std::ranges::all_of(takers, [&](int i) {
        const auto steps = membership.steps();
        const auto found = std::ranges::find(steps, IdOf(i), &control::MemberStep::node);
        return found != steps.end() && found->step >= step;
      });
    });
  }
  bool AllOver() {
    return AtAll([](const Membership& m) { return !m.layouts().moving(); });
  }
  bool Finished() {
    return Agreed() && AllOver() &&
           AtAll([](const Membership& m) { return m.view()->layout.voters == MembersOf(m.view()->layout); });
  }
  const Layout& layout(int i = 0) { return (*this)[i].view()->layout; }
  int LogLinesWith(int i, const std::string& text) {
    return static_cast<int>(std::ranges::count_if(
        node(i).log, [&](const std::string& line) { return line.find(text) != std::string::npos; }));
  }

  int members_;
};

}  // namespace gyre
