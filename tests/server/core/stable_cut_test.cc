// The stable cut of one node among three: what raises it, what holds it back, and what it forbids.
#include "server/core/stable_cut.h"

#include "tests/server/core/driven_node.h"

namespace gyre {
namespace {

constexpr uint64_t kNow = CounterOfMillis(kWallMs);

struct StableCutTest : NodeTest {
  OpId said = 0;

  // What B and C say of themselves.
  void Say(NodeId from, const peer::CutState& state) { Step(FromPeer{from, {1}, {++said, state}}); }
  void BothSay(const peer::CutState& state) {
    Say(kB, state);
    Say(kC, state);
  }
  void Run(Micros time) {
    for (Micros end = now.steady + time; now.steady < end;) {
      now.steady = now.steady + Millis(100);
      now.wall_ms += 100;
      Tick();
      Commit();
    }
  }
  const Cuts& Held() const { return node->replica().cuts(); }
  // A holds `cut`, as all others do.
  void Hold(uint64_t cut) {
    cuts = {.confirmed = cut, .cut = cut};
    Restart(std::nullopt);
    BothSay({.ready = cut, .confirmed = cut, .exchanged = cut, .cut = cut, .all = cut});
    Run(Seconds(2));
    ASSERT_EQ(Held().all, cut);
  }
  RecordBytes Tombstone(NodeId by, uint64_t counter) {
    Record record;
    record.seen.Add({{by.value, 1}, counter});
    return Encoded(record);
  }
  absl::StatusCode Store(peer::StoreRow row) {
    Answer(kB, 77, std::move(row));
    Commit();
    for (const Outbox::Send& send : Sent()) {
      if (send.message.op == 77) return std::get<peer::StoreReply>(send.message.body).code;
    }
    return absl::StatusCode::kInternal;
  }
};

TEST_F(StableCutTest, ItConfirmsWhatAllAreReadyForAndTellsItWhenItIsDurable) {
  const uint64_t ready = kNow - CounterOfMillis(5000);
  BothSay({.ready = ready});
  for (int i = 0; i < 20; ++i) {
    now.steady = now.steady + Millis(100);
    Tick();
    Settle();
  }
  EXPECT_EQ(Held().promised, ready);
  EXPECT_EQ(out.cuts->confirmed, ready);
  EXPECT_EQ(cut_said.confirmed, 0u);
  Commit();
  Run(Seconds(1));
  EXPECT_EQ(cut_said.confirmed, ready);
}

TEST_F(StableCutTest, ItIsNotReadyForItsOwnPresent) {
  Run(Seconds(2));
  EXPECT_LE(cut_said.ready, CounterOfMillis(now.wall_ms - limits.drift_ms));
  EXPECT_GT(cut_said.ready, 0u);
}

TEST_F(StableCutTest, AMemberThatHasSaidNothingHoldsItBack) {
  Say(kB, {.ready = kNow});
  Run(Seconds(3));
  EXPECT_EQ(Held().promised, 0u);
  ASSERT_EQ(node->stable_cut().blockers().size(), 1u);
  EXPECT_EQ(node->stable_cut().blockers()[0].node, kC);
}

TEST_F(StableCutTest, AMemberThatIsAwayIsNamed) {
  BothSay({.ready = kNow});
  Step(PeerDown{kC});
  Run(Seconds(2));
  const StableCut::Blocker expected = {kC, "it is away"};
  EXPECT_EQ(node->stable_cut().blockers(), std::vector{expected});
}

TEST_F(StableCutTest, AnOperationThatBeganBeforeIsAwaited) {
  BothSay({.ready = kNow});
  Call(PutCall{.key = "k", .value = "v"}, Seconds(3));  // nobody confirms it
  Sent();
  Run(Seconds(2));
  EXPECT_EQ(Held().promised, 0u);
  Run(Seconds(3));
  EXPECT_EQ(Held().promised, kNow);
}

TEST_F(StableCutTest, AHintWithDataHoldsItBackAndAMarkerDoesNot) {
  Step(PeerDown{kC});
  BothSay({.ready = kNow});
  EXPECT_EQ(Store({.row_key = RowKeyOf("k"), .record = EmptyRecord(), .hint_for = kC}),
            absl::StatusCode::kOk);
  Run(Seconds(2));
  EXPECT_EQ(Held().promised, kNow);
  BothSay({.ready = kNow + 5});
  EXPECT_EQ(Store({.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("v", kB, kNow + 9)), .hint_for = kC}),
            absl::StatusCode::kOk);
  Run(Seconds(2));
  EXPECT_EQ(Held().promised, kNow);
}

TEST_F(StableCutTest, AfterItsPromiseItTakesNoHintThatHoldsAnythingBelow) {
  BothSay({.ready = kNow});
  Run(Seconds(2));
  ASSERT_EQ(Held().promised, kNow);
  EXPECT_EQ(Store({.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("v", kB, kNow)), .hint_for = kC}),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Store({.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("v", kB, kNow + 1)), .hint_for = kC}),
            absl::StatusCode::kOk);
  // As a replica from a replica it takes it.
  EXPECT_EQ(Store({.row_key = RowKeyOf("j"), .record = Encoded(RecordOf("v", kB, kNow))}),
            absl::StatusCode::kOk);
}

TEST_F(StableCutTest, AfterItsPromiseItMintsAboveIt) {
  cuts = {.confirmed = kNow + CounterOfMillis(100), .cut = 0};
  Restart(std::nullopt);
  Put({.key = "k", .value = "v"});
  EXPECT_GT(OnDisk("k").seen.Max(), cuts.confirmed);
}

TEST_F(StableCutTest, WhatAllHaveExchangedItHoldsOnceThatIsDurable) {
  BothSay({.ready = kNow, .confirmed = kNow, .exchanged = kNow});
  Run(Seconds(2));
  ASSERT_EQ(Held().promised, kNow);
  EXPECT_EQ(Held().held, 0u);  // this node has not compared since
  EXPECT_EQ(cut_said.exchanged, 0u);
}

TEST_F(StableCutTest, ARecordEntirelyBelowItThatWasReadUnderALowerOneIsNoNews) {
  Hold(1000);
  EXPECT_EQ(Store({.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("old", kB, 900)), .cut = 999}),
            absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(OnDisk("k").empty());
  EXPECT_EQ(Store({.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("live", kB, 900)), .cut = 1000}),
            absl::StatusCode::kOk);
  EXPECT_EQ(OnDisk("k").versions.size(), 1u);
}

TEST_F(StableCutTest, AnOldSiblingInALateRecordIsLeftOut) {
  Hold(1000);
  Record late = RecordOf("old", kB, 900);
  ApplyPut(late, {.dot = {{kC.value, 1}, 2000}, .value = "new"}, std::make_unique<CausalContext>().get());
  ASSERT_EQ(late.versions.size(), 2u);
  EXPECT_EQ(Store({.row_key = RowKeyOf("k"), .record = Encoded(late), .cut = 0}), absl::StatusCode::kOk);
  ASSERT_EQ(OnDisk("k").versions.size(), 1u);
  EXPECT_EQ(OnDisk("k").versions[0].value, "new");
}

TEST_F(StableCutTest, WhatAllHoldIsCollectedAtEveryMerge) {
  Hold(1000);
  EXPECT_EQ(Store({.row_key = RowKeyOf("k"), .record = Tombstone(kB, 900), .cut = 1000}),
            absl::StatusCode::kOk);
  EXPECT_EQ(disk[RowKeyOf("k")], nullptr);
}

TEST_F(StableCutTest, AnOwnDotBelowItDoesNotEndTheActor) {
  Hold(1000);
  const Actor self = node->replica().clock().actor();
  Record own;
  own.seen.Add({self, 900});
  Store({.row_key = RowKeyOf("k"), .record = Encoded(own), .cut = 1000});
  EXPECT_FALSE(node->replica().clock().retire_pending());
}

TEST_F(StableCutTest, AFillingNodeHoldsNoneAndSaysSo) {
  filling = true;
  cuts = {.confirmed = 400, .cut = 400};  // it did
  Restart(std::nullopt);
  BothSay({.ready = kNow, .confirmed = kNow, .exchanged = kNow, .cut = kNow, .all = 500});
  Run(Seconds(2));
  EXPECT_TRUE(cut_said.filling);
  EXPECT_EQ(cut_said.cut, 0u);
  EXPECT_EQ(node->replica().read_cut(""), 0u);
  EXPECT_EQ(Held().full, kNow);
  // What was known to all others before is no news to it either.
  EXPECT_EQ(Store({.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("old", kB, 900)), .cut = 0}),
            absl::StatusCode::kOutOfRange);
}

TEST_F(StableCutTest, NewsThatWasOvertakenIsNone) {
  Say(kB, {.ready = 7});
  Step(FromPeer{kB, {1}, {said, peer::CutState{.ready = 3}}});
  Say(kC, {.ready = 9});
  Run(Seconds(2));
  EXPECT_EQ(Held().promised, 7u);
}

TEST_F(StableCutTest, NothingIsCollectedByACutFromTheFuture) {
  BothSay({.ready = kNow, .cut = CounterOfMillis(kWallMs * 2), .all = CounterOfMillis(kWallMs * 2)});
  Run(Seconds(2));
  EXPECT_EQ(Held().all, 0u);
}

TEST_F(StableCutTest, ANodeWhoseClockWentBackMintsAboveWhatOthersHaveConfirmed) {
  const uint64_t confirmed = kNow + CounterOfMillis(60'000);
  BothSay({.ready = confirmed, .confirmed = confirmed});
  Put({.key = "k", .value = "v"});
  EXPECT_GT(OnDisk("k").seen.Max(), confirmed);
}

TEST_F(StableCutTest, ANodeThatLostItsStoreMintsNothingBeforeItHasHeardWhatWasPromised) {
  filling = true;
  Restart(std::nullopt);
  Call(PutCall{.key = "k", .value = "v"}, Seconds(5));
  for (const Outbox::Send& ask : Sent()) Answer(ask.to, ask.message.op, peer::FetchReply{});  // the quorum
  Say(kB, {.filling = true});
  Commit();
  EXPECT_TRUE(OnDisk("k").empty());
  const uint64_t confirmed = kNow + CounterOfMillis(60'000);
  Say(kC, {.ready = confirmed, .confirmed = confirmed});
  Commit();
  Commit();
  EXPECT_GT(OnDisk("k").seen.Max(), confirmed);
}

TEST_F(StableCutTest, WhereAllLostTheirStoresItMintsOnceAllHaveSaidSo) {
  filling = true;
  Restart(std::nullopt);
  Say(kB, {.filling = true});
  EXPECT_FALSE(Held().known);
  Say(kC, {.filling = true});
  EXPECT_TRUE(Held().known);
}

TEST_F(StableCutTest, WhatAMemberSaidIsForgottenWithItsLink) {
  BothSay({.ready = kNow});
  Step(PeerDown{kC});
  Step(PeerUp{kC});
  Run(Seconds(2));
  EXPECT_EQ(Held().promised, 0u);
  Say(kC, {.ready = kNow});
  Run(Seconds(2));
  EXPECT_EQ(Held().promised, kNow);
}

TEST_F(StableCutTest, ANodeWhoseClockIsOffHandsItsWritesOn) {
  BothSay({.wall_ms = kWallMs - 60'000, .ready = 1});
  Run(Seconds(2));
  EXPECT_TRUE(node->stable_cut().clock_is_off());
  Call(PutCall{.key = "k", .value = "v"});
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<peer::Forward>(sent[0].message.body));
  // What was handed to it by another it coordinates, and so it does when it is alone.
  Sent();
  Answer(kB, 5, peer::Forward{PutCall{.key = "k", .value = "v"}, Seconds(1)});
  Commit();
  EXPECT_FALSE(OnDisk("k").empty());
}

}  // namespace
}  // namespace gyre
