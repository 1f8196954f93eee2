// The checker of histories, checked: what can be explained passes, and each kind of lie does not.
#include "tests/sim/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gyre::sim {
namespace {

using testing::HasSubstr;

const Key kKey = {"default", "k"};

// Clients of one key with three replicas, at quorums. Each call takes the time between two ticks.
struct HistoryTest : testing::Test {
  History history;
  Micros now{1};
  uint64_t write_ids = 0;

  Micros Tick() { return now = now + Millis(1); }

  EventId Begin(const std::string& value, const Claims* context, bool is_delete = false) {
    const EventId id = history.Begin(kKey, is_delete, value, {1, ++write_ids}, context, Tick()).id;
    history.Attempt(id);
    return id;
  }
  void End(EventId id, Outcome outcome, int w = 2) { history.AttemptEnded(id, outcome, w, Tick()); }
  EventId Put(const std::string& value, const Claims* context) {
    const EventId id = Begin(value, context);
    End(id, Outcome::kOk);
    return id;
  }
  EventId Delete(const Claims& context) {
    const EventId id = Begin("", &context, true);
    End(id, Outcome::kOk);
    return id;
  }
  // The context of a read that began now and showed these.
  Claims Saw(const std::vector<EventId>& events) {
    Claims claims = {.bytes = "context"};
    for (const EventId event : events) claims.claims.push_back({.event = event, .at = Tick(), .r = 2});
    return claims;
  }
  std::string Read(std::vector<std::string> values, int r = 2) {
    const Micros start = Tick();
    return history.Check(
        {.key = kKey, .values = std::move(values), .start = start, .end = Tick(), .r = r, .n = 3});
  }
};

const Claims kNothingSeen = {.bytes = "context"};

TEST_F(HistoryTest, WhatWasAcknowledgedMustBeRead) {
  EXPECT_EQ(Read({}), "");
  Put("a", &kNothingSeen);
  EXPECT_EQ(Read({"a"}), "");
  EXPECT_THAT(Read({}), HasSubstr("but lacks a"));
}

TEST_F(HistoryTest, NothingIsInvented) {
  Put("a", &kNothingSeen);
  EXPECT_THAT(Read({"a", "b"}), HasSubstr("nobody ever put b"));
  EXPECT_THAT(Read({"a", "a"}), HasSubstr("the same value twice"));
}

TEST_F(HistoryTest, AValueOfAnotherKeyIsInventedHere) {
  history.Begin({"default", "other"}, false, "o", {9, 9}, &kNothingSeen, Tick());
  EXPECT_THAT(Read({"o"}), HasSubstr("nobody ever put o"));
}

TEST_F(HistoryTest, SiblingsStayUntilSomebodyHasSeenThem) {
  const EventId a = Put("a", &kNothingSeen);
  const EventId b = Put("b", &kNothingSeen);
  EXPECT_EQ(Read({"a", "b"}), "");
  EXPECT_THAT(Read({"b"}), HasSubstr("but lacks a"));
  const Claims both = Saw({a, b});
  Put("c", &both);
  EXPECT_EQ(Read({"c"}), "");
  EXPECT_THAT(Read({"c", "a"}), HasSubstr("had seen a"));
  EXPECT_THAT(Read({"a", "b"}), HasSubstr("superseded before"));
}

TEST_F(HistoryTest, WhoSawOneSiblingDoesNotReplaceTheOther) {
  const EventId a = Put("a", &kNothingSeen);
  Put("b", &kNothingSeen);
  const Claims one = Saw({a});
  Put("c", &one);
  EXPECT_EQ(Read({"b", "c"}), "");
  EXPECT_THAT(Read({"c"}), HasSubstr("but lacks b"));
}

TEST_F(HistoryTest, WhatWasSeenThroughOthersIsSeen) {
  const EventId a = Put("a", &kNothingSeen);
  const Claims saw_a = Saw({a});
  const EventId b = Put("b", &saw_a);
  const Claims saw_b = Saw({b});
  Put("c", &saw_b);
  EXPECT_THAT(Read({"a", "c"}), HasSubstr("had seen a"));
}

TEST_F(HistoryTest, ADeletedValueDoesNotReturn) {
  const EventId a = Put("a", &kNothingSeen);
  Delete(Saw({a}));
  EXPECT_EQ(Read({}), "");
  EXPECT_THAT(Read({"a"}), HasSubstr("superseded before"));
}

TEST_F(HistoryTest, ADeleteLeavesWhatItHasNotSeen) {
  const EventId a = Put("a", &kNothingSeen);
  const Claims saw = Saw({a});
  Put("b", &kNothingSeen);
  Delete(saw);
  EXPECT_EQ(Read({"b"}), "");
  EXPECT_THAT(Read({}), HasSubstr("but lacks b"));
}

TEST_F(HistoryTest, WhatWasRefusedIsNeverRead) {
  const EventId a = Begin("a", &kNothingSeen);
  End(a, Outcome::kRefused);
  EXPECT_EQ(Read({}), "");
  EXPECT_THAT(Read({"a"}), HasSubstr("was refused"));
}

TEST_F(HistoryTest, AnUnknownOutcomeMayBeEither) {
  const EventId a = Begin("a", &kNothingSeen);
  End(a, Outcome::kUnknown);
  EXPECT_EQ(Read({}), "");
  EXPECT_EQ(Read({"a"}), "");
}

TEST_F(HistoryTest, AnUnknownWriteMayHaveSupersededWhatItSaw) {
  const EventId a = Put("a", &kNothingSeen);
  const Claims saw = Saw({a});
  End(Begin("b", &saw), Outcome::kUnknown);
  EXPECT_EQ(Read({"a"}), "");
  EXPECT_EQ(Read({"b"}), "");
  EXPECT_THAT(Read({}), HasSubstr("but lacks a"));
}

TEST_F(HistoryTest, ReadsAndWritesThatNeedNotMeetProveNothing) {
  const EventId a = Begin("a", &kNothingSeen);
  End(a, Outcome::kOk, /*w=*/1);
  EXPECT_EQ(Read({}, /*r=*/2), "");
  EXPECT_THAT(Read({}, /*r=*/3), HasSubstr("but lacks a"));
}

TEST_F(HistoryTest, ALostDiskCountsForOneReplicaLess) {
  Put("a", &kNothingSeen);
  history.DiskLost();
  EXPECT_THAT(Read({}), HasSubstr("but lacks a")) << "one is left that has it";
  history.DiskLost();
  EXPECT_EQ(Read({}), "") << "both that confirmed it may be gone";
}

TEST_F(HistoryTest, AWriteThatEndsAfterTheReadBeganNeedNotBeSeen) {
  const EventId a = Begin("a", &kNothingSeen);
  const Micros start = Tick();
  End(a, Outcome::kOk);
  EXPECT_EQ(history.Check({.key = kKey, .values = {}, .start = start, .end = Tick(), .r = 2, .n = 3}), "");
}

TEST_F(HistoryTest, WhatHasExpiredIsNotRead) {
  const EventId a = Put("a", &kNothingSeen);
  history.Expires(a);
  EXPECT_EQ(Read({}), "") << "it may have";
  EXPECT_EQ(Read({"a"}), "") << "or not";
  const Micros start = Tick();
  EXPECT_THAT(
      history.Check(
          {.key = kKey, .values = {"a"}, .start = start, .end = Tick(), .r = 2, .n = 3, .all_expired = true}),
      HasSubstr("has expired"));
}

TEST_F(HistoryTest, WhereTheLastWriteWinsThereIsOne) {
  Put("a", &kNothingSeen);
  Put("b", &kNothingSeen);
  const auto read = [&](std::vector<std::string> values) {
    const Micros start = Tick();
    return history.Check({.key = kKey,
                          .values = std::move(values),
                          .start = start,
                          .end = Tick(),
                          .r = 2,
                          .n = 3,
                          .rule = ConflictRule::kLastWriteWins});
  };
  EXPECT_EQ(read({"b"}), "");
  EXPECT_THAT(read({"a", "b"}), HasSubstr("more than one value"));
  EXPECT_THAT(read({}), HasSubstr("but lacks"));
}

}  // namespace
}  // namespace gyre::sim
