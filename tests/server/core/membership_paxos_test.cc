// The two roles of choosing a layout, answer by answer.
#include "server/core/membership_paxos.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace gyre {
namespace {

using Verdict = Proposer::Verdict;

const NodeId kA{1}, kB{2}, kC{3}, kStranger{9};

Layout Named(const char* name) {
  return *WithKeyspace(FirstLayout({{kA, "", 1}}), {.name = name, .r = {}, .w = {}});
}

AcceptorState Fresh() { return {.base = {1, 5}, .promised = {}, .accepted_ballot = {}, .accepted = {}}; }

Proposer ProposerOf(Ballot ballot) { return Proposer({{1, 5}, {kA, kB, kC}, ballot, Named("mine")}); }

control::Prepare PrepareOf(const Proposer& proposer) {
  return std::get<control::Prepare>(proposer.Request());
}
control::Accept AcceptOf(const Proposer& proposer) { return std::get<control::Accept>(proposer.Request()); }

TEST(Acceptor, PromisesOnlyUpwards) {
  AcceptorState acceptor = Fresh();
  EXPECT_TRUE(acceptor.Step(control::Prepare{1, 5, {2, kB}}).promised);
  EXPECT_TRUE(acceptor.Step(control::Prepare{1, 5, {2, kB}}).promised)
      << "a repeated message gets the same answer";
  const control::Prepared refused = acceptor.Step(control::Prepare{1, 5, {2, kA}});
  EXPECT_FALSE(refused.promised);
  EXPECT_EQ(refused.highest, (Ballot{2, kB}));
  EXPECT_EQ(refused.ballot, (Ballot{2, kA}));
  EXPECT_TRUE(acceptor.Step(control::Prepare{1, 5, {3, kA}}).promised);
  EXPECT_EQ(acceptor.promised, (Ballot{3, kA}));
}

TEST(Acceptor, AcceptsNothingBelowItsPromise) {
  AcceptorState acceptor = Fresh();
  acceptor.Step(control::Prepare{1, 5, {2, kB}});
  const control::Accepted refused = acceptor.Step(control::Accept{1, 5, {1, kC}, Named("old")});
  EXPECT_FALSE(refused.accepted);
  EXPECT_EQ(refused.highest, (Ballot{2, kB}));
  EXPECT_EQ(acceptor.accepted, std::nullopt);
  EXPECT_TRUE(acceptor.Step(control::Accept{1, 5, {2, kB}, Named("new")}).accepted);
  const control::Prepared told = acceptor.Step(control::Prepare{1, 5, {3, kA}});
  EXPECT_EQ(told.accepted, Named("new"));
  EXPECT_EQ(told.accepted_ballot, (Ballot{2, kB}));
}

TEST(Acceptor, AcceptingIsAPromiseToo) {
  AcceptorState acceptor = Fresh();
  EXPECT_TRUE(acceptor.Step(control::Accept{1, 5, {4, kA}, Named("x")}).accepted);
  EXPECT_FALSE(acceptor.Step(control::Prepare{1, 5, {3, kC}}).promised);
}

TEST(Proposer, HasItsOwnChosenByAMajority) {
  AcceptorState a = Fresh();
  AcceptorState b = Fresh();
  Proposer proposer = ProposerOf({1, kA});
  EXPECT_EQ(proposer.Unanswered(), (std::vector<NodeId>{kA, kB, kC}));
  EXPECT_EQ(proposer.Step(kA, a.Step(PrepareOf(proposer))), Verdict::kPending);
  EXPECT_EQ(proposer.Step(kA, a.Step(PrepareOf(proposer))), Verdict::kPending) << "a voter counts once";
  EXPECT_EQ(proposer.Step(kStranger, b.Step(PrepareOf(proposer))), Verdict::kPending);
  EXPECT_EQ(proposer.answered(), 1u);
  EXPECT_FALSE(proposer.offers_wanted());
  EXPECT_EQ(proposer.Step(kB, b.Step(PrepareOf(proposer))), Verdict::kAccept);
  EXPECT_TRUE(proposer.offers_wanted());
  EXPECT_EQ(proposer.Unanswered().size(), 3u) << "the second phase asks all again";
  EXPECT_EQ(proposer.Step(kB, b.Step(AcceptOf(proposer))), Verdict::kPending);
  EXPECT_EQ(proposer.Unanswered(), (std::vector<NodeId>{kA, kC}));
  EXPECT_EQ(proposer.Step(kA, a.Step(AcceptOf(proposer))), Verdict::kChosen);
  EXPECT_EQ(proposer.value(), Named("mine"));
}

TEST(Proposer, CarriesOnWhatWasAcceptedLast) {
  AcceptorState a = Fresh();
  AcceptorState b = Fresh();
  a.Step(control::Accept{1, 5, {1, kB}, Named("first")});
  b.Step(control::Accept{1, 5, {2, kC}, Named("second")});
  Proposer proposer = ProposerOf({3, kA});
  EXPECT_EQ(proposer.Step(kB, b.Step(PrepareOf(proposer))), Verdict::kPending);
  EXPECT_EQ(proposer.Step(kA, a.Step(PrepareOf(proposer))), Verdict::kAccept);
  EXPECT_EQ(proposer.value(), Named("second"));
  EXPECT_FALSE(proposer.offers_wanted());
}

TEST(Proposer, GivesWayWhenRefused) {
  AcceptorState a = Fresh();
  a.Step(control::Prepare{1, 5, {7, kC}});
  Proposer proposer = ProposerOf({3, kA});
  EXPECT_EQ(proposer.Step(kA, a.Step(PrepareOf(proposer))), Verdict::kRefused);
  EXPECT_TRUE(proposer.refused());
  EXPECT_EQ(proposer.highest(), (Ballot{7, kC}));
  AcceptorState b = Fresh();
  EXPECT_EQ(proposer.Step(kB, b.Step(PrepareOf(proposer))), Verdict::kPending)
      << "an attempt that is over stays so";
}

TEST(Proposer, IgnoresAnswersOfOtherAttempts) {
  AcceptorState b = Fresh();
  Proposer before = ProposerOf({1, kA});
  Proposer proposer = ProposerOf({2, kA});
  control::Prepared late = b.Step(PrepareOf(before));
  EXPECT_EQ(proposer.Step(kB, late), Verdict::kPending);
  late = b.Step(PrepareOf(proposer));
  late.base_digest = 6;
  EXPECT_EQ(proposer.Step(kB, late), Verdict::kPending);
  EXPECT_EQ(proposer.answered(), 0u);
}

TEST(Proposer, MajorityTable) {
  for (const auto& [voters, majority] :
       std::vector<std::pair<size_t, size_t>>{{1, 1}, {2, 2}, {3, 2}, {4, 3}, {5, 3}}) {
    Proposer::Plan plan{{1, 5}, {}, {1, kA}, Named("mine")};
    for (size_t i = 0; i < voters; ++i) plan.voters.push_back(NodeId{i + 1});
    EXPECT_EQ(Proposer(plan).majority(), majority) << voters;
  }
}

}  // namespace
}  // namespace gyre
