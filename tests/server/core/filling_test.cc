// A node that lost its store: what it answers until it has what the others have, and when that is.
#include "tests/server/core/driven_node.h"

namespace gyre {
namespace {

struct FillingTest : NodeTest {
  void SetUp() override {
    filling = true;
    Restart(std::nullopt);
  }
  // Answers the questions for own sums with zero: nothing is there. Returns what peers were asked then.
  std::vector<Outbox::Send> Questions() {
    for (SumRequest& request : std::exchange(out.sum_reads, {})) {
      SumsRead read = {.request = request};
      read.sums.assign(request.slices.size(), RowHash{});
      Step(std::move(read));
    }
    Settle();
    return Sent();
  }
  // Plays comparisons until none is asked for any more; all are found equal. Returns who was asked.
  std::set<NodeId> CompareAll() {
    std::set<NodeId> asked;
    // The question that was under way when the test began is given up first.
    for (const Micros wait : {Seconds(6), Seconds(2)}) {
      TickAfter(wait);
      for (std::vector<Outbox::Send> questions = Questions(); !questions.empty(); questions = Questions()) {
        for (const Outbox::Send& question : questions) {
          asked.insert(question.to);
          Answer(question.to, question.message.op, peer::CompareSumsReply{});
        }
      }
    }
    return asked;
  }
};

TEST_F(FillingTest, ItAnswersNoReads) {
  Answer(kB, 5, peer::FetchRow{RowKeyOf("k")});
  EXPECT_EQ(std::get<peer::FetchReply>(Sent().at(0).message.body).code, absl::StatusCode::kUnavailable);
  Answer(kB, 6,
         peer::FetchPage{.after = RowKeyFloor(kDefault, 0), .end = RowKeyCeiling(kDefault, UINT64_MAX)});
  EXPECT_EQ(std::get<peer::FetchPageReply>(Sent().at(0).message.body).code, absl::StatusCode::kUnavailable);
}

TEST_F(FillingTest, ItTakesWrites) {
  Answer(kB, 5, peer::StoreRow{.row_key = RowKeyOf("k"), .record = Encoded(RecordOf("v", kB, 7))});
  Commit();
  EXPECT_EQ(std::get<peer::StoreReply>(Sent().at(0).message.body).code, absl::StatusCode::kOk);
}

TEST_F(FillingTest, ItReadsAQuorumOfTheOthersBeforeItCoordinates) {
  Step(FromPeer{kB, {1}, {1, peer::CutState{}}});
  Call(PutCall{.key = "k", .value = "v", .write_id = {1, 2}});
  const std::vector<Outbox::Send> fetches = Sent();
  ASSERT_EQ(fetches.size(), 2u);
  for (const Outbox::Send& fetch : fetches) {
    ASSERT_TRUE(std::holds_alternative<peer::FetchRow>(fetch.message.body));
    Answer(fetch.to, fetch.message.op, peer::FetchReply{.record = Encoded(RecordOf("old", kB, 7))});
  }
  Commit();
  const Record record = OnDisk("k");
  ASSERT_EQ(record.versions.size(), 1u) << "it overwrites what the others hold, and is no sibling of it";
  EXPECT_EQ(record.versions[0].value, "v");
}

TEST_F(FillingTest, ItIsFullOnceAllOthersWereFoundEqual) {
  EXPECT_EQ(CompareAll(), (std::set<NodeId>{kB, kC}));
  EXPECT_FALSE(node->exchange().filling());
  EXPECT_TRUE(out.filled);
  Answer(kB, 5, peer::FetchRow{RowKeyOf("k")});
  EXPECT_EQ(std::get<peer::FetchReply>(Sent().at(0).message.body).code, absl::StatusCode::kOk);
}

TEST_F(FillingTest, AMemberThatIsAwayKeepsItFilling) {
  Step(PeerDown{kC});
  EXPECT_EQ(CompareAll(), std::set<NodeId>{kB});
  EXPECT_TRUE(node->exchange().filling());
  EXPECT_FALSE(out.filled);
  Step(PeerUp{kC});
  EXPECT_TRUE(CompareAll().contains(kC));
  EXPECT_FALSE(node->exchange().filling());
}

}  // namespace
}  // namespace gyre
