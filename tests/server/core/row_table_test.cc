// Rows in hand: what waits for them, what is on its way to disk, and who leaves when there is no room.
#include "server/core/row_table.h"

#include <gtest/gtest.h>

#include "tests/server/core/turns.h"

namespace gyre {
namespace {

RecordBytes Bytes(std::string text) { return std::make_shared<const std::string>(std::move(text)); }
OpId OpOf(const Input& input) { return std::get<ResumeWrite>(input).op; }

TEST(RowTable, ARowIsReadOnceWhoeverWaitsAndWhoWaitsGoesOnInOrder) {
  RowTable rows(1 << 20);
  Outbox out;
  EXPECT_EQ(rows.Find("k"), nullptr);
  rows.Park("k", ResumeWrite{1}, out);
  rows.Park("k", ResumeWrite{2}, out);
  EXPECT_EQ(out.reads, std::vector<std::string>{"k"});
  EXPECT_EQ(rows.Find("k"), nullptr) << "not in hand yet";
  const RecordBytes record = Bytes("r");
  const std::vector<Input> parked = rows.Loaded("k", record);
  ASSERT_EQ(parked.size(), 2u);
  EXPECT_EQ(OpOf(parked[0]), 1u);
  EXPECT_EQ(OpOf(parked[1]), 2u);
  ASSERT_NE(rows.Find("k"), nullptr);
  EXPECT_EQ(rows.Find("k")->latest, record);
  EXPECT_EQ(rows.Find("k")->committed, record);
}

TEST(RowTable, ARowThatIsNotThereIsInHandToo) {
  RowTable rows(1 << 20);
  Outbox out;
  rows.Park("k", ResumeWrite{1}, out);
  rows.Loaded("k", nullptr);
  ASSERT_NE(rows.Find("k"), nullptr);
  EXPECT_EQ(rows.Find("k")->latest, nullptr);
}

TEST(RowTable, ARowThatCannotBeReadIsForgotten) {
  RowTable rows(1 << 20);
  Outbox out;
  rows.Park("k", ResumeWrite{1}, out);
  EXPECT_EQ(rows.LoadFailed("k").size(), 1u);
  EXPECT_EQ(rows.size(), 0u);
  rows.Park("k", ResumeWrite{2}, out);
  EXPECT_EQ(out.reads.size(), 2u) << "and read anew";
}

TEST(RowTable, WhatIsCommittedLagsBehindWhatIsLatest) {
  RowTable rows(1 << 20);
  Outbox out;
  rows.Park("k", ResumeWrite{1}, out);
  const RecordBytes zero = Bytes("0");
  const RecordBytes one = Bytes("1");
  const RecordBytes two = Bytes("2");
  rows.Loaded("k", zero);
  rows.Change(*rows.Find("k"), one);
  rows.Change(*rows.Find("k"), two);
  EXPECT_EQ(rows.Find("k")->latest, two);
  EXPECT_EQ(rows.Find("k")->committed, zero);
  EXPECT_EQ(rows.idle_bytes(), 0u) << "a row with changes under way never leaves";
  rows.ChangeCommitted(*rows.Find("k"), one);
  EXPECT_EQ(rows.Find("k")->committed, one);
  rows.ChangeCommitted(*rows.Find("k"), two);
  EXPECT_EQ(rows.Find("k")->committed, two);
  EXPECT_GT(rows.idle_bytes(), 0u);
}

TEST(RowTable, AChangeThatFailedLeavesARowToBeReadAnew) {
  RowTable rows(1 << 20);
  Outbox out;
  rows.Park("k", ResumeWrite{1}, out);
  rows.Loaded("k", nullptr);
  rows.Change(*rows.Find("k"), Bytes("1"));
  rows.ChangeFailed(*rows.Find("k"));
  EXPECT_EQ(rows.Find("k"), nullptr);
  EXPECT_EQ(rows.size(), 0u);
}

TEST(RowTable, AFailedChangeThatALaterOneHoldsLeavesTheRowInHand) {
  RowTable rows(1 << 20);
  Outbox out;
  rows.Park("k", ResumeWrite{1}, out);
  rows.Loaded("k", nullptr);
  const RecordBytes two = Bytes("12");
  rows.Change(*rows.Find("k"), Bytes("1"));
  rows.Change(*rows.Find("k"), two);
  rows.ChangeFailed(*rows.Find("k"));
  ASSERT_NE(rows.Find("k"), nullptr);
  EXPECT_EQ(rows.Find("k")->committed, nullptr);
  rows.ChangeCommitted(*rows.Find("k"), two);
  EXPECT_EQ(rows.Find("k")->committed, two);
}

void Load(RowTable& rows, const std::string& row_key) {
  Outbox out;
  rows.Park(row_key, ResumeWrite{1}, out);
  rows.Loaded(row_key, Bytes(std::string(1000, 'x')));
}

TEST(RowTable, AnIdleRowThatWasNotUsedLatelyLeavesFirst) {
  RowTable rows(3000);
  Load(rows, "a");
  Load(rows, "b");
  EXPECT_NE(rows.Find("a"), nullptr);  // used
  Load(rows, "c");
  rows.Evict();
  EXPECT_EQ(rows.Find("b"), nullptr);
  EXPECT_NE(rows.Find("a"), nullptr);
  EXPECT_NE(rows.Find("c"), nullptr);
  EXPECT_LE(rows.idle_bytes(), 3000u);
}

TEST(RowTable, AllRowsThatWereUsedLeaveOneAfterTheOther) {
  RowTable rows(3000);
  Load(rows, "a");
  Load(rows, "b");
  Load(rows, "c");
  for (const char* row_key : {"a", "b", "c"}) EXPECT_NE(rows.Find(row_key), nullptr);
  rows.Evict();
  EXPECT_EQ(rows.Find("a"), nullptr) << "all marks are gone then, and it is the first";
  EXPECT_NE(rows.Find("b"), nullptr);
  EXPECT_NE(rows.Find("c"), nullptr);
}

TEST(RowTable, ManyRowsAreFoundExpectedOrNot) {
  RowTable rows(100 << 20);
  for (int i = 0; i < 1000; ++i) Load(rows, std::to_string(i));
  const std::string known = "7";
  rows.Expect({known, "never heard of"});
  for (int i = 0; i < 1000; ++i) {
    RowTable::Entry* const row = rows.Find(std::to_string(i));
    ASSERT_NE(row, nullptr) << i;
    EXPECT_EQ(row->key(), std::to_string(i));
  }
  EXPECT_EQ(rows.Find("never heard of"), nullptr);
  EXPECT_EQ(rows.size(), 1000u);
  rows.DropIdle();
  EXPECT_EQ(rows.size(), 0u);
  EXPECT_EQ(rows.idle_bytes(), 0u);
}

TEST(RowTable, WithoutRoomRowsStayUntilTheEndOfTheTurn) {
  RowTable rows(0);
  Load(rows, "a");
  Load(rows, "b");
  EXPECT_NE(rows.Find("a"), nullptr) << "who asked for it may need it together with another";
  EXPECT_NE(rows.Find("b"), nullptr);
  rows.Evict();
  EXPECT_EQ(rows.Find("a"), nullptr);
  EXPECT_EQ(rows.Find("b"), nullptr);
}

TEST(RowTable, DropIdleKeepsWhatIsUnderWay) {
  RowTable rows(1 << 20);
  Load(rows, "idle");
  Load(rows, "changing");
  rows.Change(*rows.Find("changing"), Bytes("1"));
  Outbox out;
  rows.Park("reading", ResumeWrite{1}, out);
  rows.DropIdle();
  EXPECT_EQ(rows.Find("idle"), nullptr);
  EXPECT_NE(rows.Find("changing"), nullptr);
  EXPECT_EQ(rows.Loaded("reading", nullptr).size(), 1u);
}

}  // namespace
}  // namespace gyre
