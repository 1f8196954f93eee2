// A lane in a world that a test holds in its hands: what goes to disk when, and who is told when.
#include "server/lane/lane.h"

#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "storage/format/row_key.h"
#include "tests/server/core/turns.h"

namespace gyre {
namespace {

constexpr uint64_t kWallMs = 1'700'000'000'000;

// Node A of three. Its disk does what it is told, when it is told.
class LaneTest : public testing::Test, protected Clock, protected Network, protected Disk {
 protected:
  struct Sent {
    NodeId to;
    std::vector<Message> batch;
  };

  void SetUp() override {
    Turn(NewLayouts{{ThreeNodes()}}, PeerUp{kB}, PeerUp{kC});
    EndCommit();  // the lease of its clock
    Forget();
  }

  template <typename... Inputs>
  void Turn(Inputs... inputs) {
    std::vector<Input> all;
    (all.push_back(std::move(inputs)), ...);
    lane_.Turn(all);
    EXPECT_TRUE(all.empty());
  }
  void EndCommit(absl::Status status = absl::OkStatus()) {
    ASSERT_FALSE(commits_.empty());
    Batch batch = std::exchange(commits_.front(), {});
    commits_.erase(commits_.begin());
    if (status.ok()) {
      for (const RowCommit& row : batch.rows) rows_[row.row_key] = row.after;
    }
    Turn(Committed{std::move(status), std::move(batch.rows), batch.actor});
  }
  void Forget() {
    sent_.clear();
    replies_.clear();
    reads_.clear();
  }

  static std::string RowKeyOf(const std::string& key) { return MakeRowKey(1, TokenOf(key).value, key); }
  static ClientCall PutOf(uint64_t ticket, const std::string& key, const std::string& value) {
    return {{ticket},
            PutCall{.key = key, .value = value, .w = ReplicaCount{ReplicaCount::How::kOne, 0}},
            Seconds(10)};
  }
  static FromPeer StoreOf(OpId op, const std::string& key, const Record& record) {
    return {kB, {1}, {op, peer::StoreRow{.row_key = RowKeyOf(key), .record = Encoded(record)}}};
  }
  static FromPeer FetchOf(OpId op, const std::string& key) {
    return {kB, {1}, {op, peer::FetchRow{.row_key = RowKeyOf(key)}}};
  }
  // The codes of the StoreReplies that B was sent, by operation.
  std::map<OpId, absl::StatusCode> Confirmed() const {
    std::map<OpId, absl::StatusCode> confirmed;
    for (const Sent& sent : sent_) {
      for (const Message& message : sent.batch) {
        const auto* reply = std::get_if<peer::StoreReply>(&message.body);
        if (sent.to == kB && reply != nullptr) confirmed[message.op] = reply->code;
      }
    }
    return confirmed;
  }
  static Record Value(const RowCommit& row) { return *DecodeRecord(*row.after); }

  Now Read() override { return {.steady = Seconds(1), .wall_ms = kWallMs}; }
  void Send(NodeId to, LayoutMark, std::vector<Message> batch) override {
    sent_.push_back({to, std::move(batch)});
  }
  void Reply(std::vector<Outbox::Reply> replies) override {
    calls_in_flight_at_reply_ = stats_.calls_in_flight.load();
    for (Outbox::Reply& reply : replies) replies_.push_back(std::move(reply));
  }
  void WantLayout(NodeId) override { ++layouts_wanted_; }
  std::vector<absl::StatusOr<RecordBytes>> ReadRows(std::span<const std::string> row_keys) override {
    reads_.emplace_back(row_keys.begin(), row_keys.end());
    std::vector<absl::StatusOr<RecordBytes>> rows;
    for (const std::string& row_key : row_keys) rows.push_back(rows_[row_key]);
    return rows;
  }
  peer::FetchPageReply ReadPage(const peer::FetchPage&) override { return {.complete = true}; }
  void ReadSums(SumRequest) override {}
  void Commit(Batch batch) override { commits_.push_back(std::move(batch)); }

  std::map<std::string, RecordBytes> rows_;
  std::vector<Batch> commits_;  // that have not ended
  std::vector<Sent> sent_;
  std::vector<Outbox::Reply> replies_;
  std::vector<std::vector<std::string>> reads_;
  int layouts_wanted_ = 0;
  uint64_t calls_in_flight_at_reply_ = 0;
  LaneStats stats_;
  Lane lane_{Node::Config{.self = kA}, ActorClock(kA.value, std::nullopt, kWallMs),
             Runtime{*this, *this, *this, stats_}};
};

TEST_F(LaneTest, WhileABatchIsOnItsWayTheNextGrows) {
  Turn(PutOf(1, "a", "1"));
  ASSERT_EQ(commits_.size(), 1u);
  EXPECT_EQ(commits_[0].rows.size(), 1u);
  Turn(PutOf(2, "b", "2"));
  Turn(PutOf(3, "c", "3"), PutOf(4, "a", "4"));
  EXPECT_EQ(commits_.size(), 1u);
  EXPECT_FALSE(lane_.idle());
  EndCommit();
  ASSERT_EQ(commits_.size(), 1u);
  EXPECT_EQ(commits_[0].rows.size(), 3u);
  EndCommit();
  EXPECT_TRUE(commits_.empty());
}

TEST_F(LaneTest, ABatchEndsAtItsLimitAndTheRestFollows) {
  Turn(PutOf(1, "first", "v"));  // so that the others wait
  constexpr size_t kValue = 1 << 20;
  for (int i = 0; i < 10; ++i) {
    const std::string key = "k" + std::to_string(i);
    Turn(StoreOf(static_cast<OpId>(100 + i), key, RecordOf(std::string(kValue, 'v'), kB, 7)));
  }
  EndCommit();
  std::vector<size_t> rows;
  while (!commits_.empty()) {
    size_t bytes = 0;
    for (const RowCommit& row : commits_[0].rows) bytes += row.after->size();
    EXPECT_LE(bytes, Lane::kBatchBytesMax + kValue + 1000);
    rows.push_back(commits_[0].rows.size());
    EndCommit();
  }
  EXPECT_EQ(rows, (std::vector<size_t>{4, 4, 2}));
  EXPECT_EQ(Confirmed().size(), 10u);
}

TEST_F(LaneTest, NobodyIsToldBeforeItIsDurable) {
  Turn(PutOf(1, "mine", "v"), StoreOf(50, "theirs", RecordOf("v", kB, 7)));
  EXPECT_TRUE(replies_.empty());
  EXPECT_TRUE(Confirmed().empty());
  ASSERT_EQ(sent_.size(), 2u) << "the other replicas store it meanwhile";
  EndCommit();
  ASSERT_EQ(replies_.size(), 1u);
  EXPECT_TRUE(replies_[0].result.status.ok());
  EXPECT_EQ(replies_[0].ticket.value, 1u);
  EXPECT_EQ(Confirmed(), (std::map<OpId, absl::StatusCode>{{50, absl::StatusCode::kOk}}));
}

TEST_F(LaneTest, NumbersAreRightWhenSomebodyIsTold) {
  Turn(PutOf(1, "k", "v"));
  EXPECT_EQ(stats_.calls_in_flight.load(), 1u);
  calls_in_flight_at_reply_ = 99;
  EndCommit();
  EXPECT_EQ(calls_in_flight_at_reply_, 0u);
}

TEST_F(LaneTest, AReadSeesOnlyWhatIsDurable) {
  Turn(PutOf(1, "k", "v"));
  Forget();
  Turn(FetchOf(60, "k"));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(std::get<peer::FetchReply>(sent_[0].batch[0].body).record, nullptr);
  EndCommit();
  Forget();
  Turn(FetchOf(61, "k"));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_NE(std::get<peer::FetchReply>(sent_[0].batch[0].body).record, nullptr);
}

// What waits was made on top of the batch that failed: it goes on top of what the disk holds instead, and
// only the first change of a row does.
TEST_F(LaneTest, AfterAFailedBatchWhatWaitsIsOnTopOfWhatTheDiskHolds) {
  Turn(StoreOf(1, "k", RecordOf("old", kB, 5)));
  EndCommit();
  const RecordBytes old = rows_.at(RowKeyOf("k"));
  Turn(StoreOf(2, "k", RecordOf("lost", kB, 6)), StoreOf(3, "new", RecordOf("lost", kB, 6)));
  Turn(StoreOf(4, "k", RecordOf("next", kB, 7)), StoreOf(5, "new", RecordOf("next", kB, 7)),
       StoreOf(6, "other", RecordOf("v", kB, 7)));
  Turn(StoreOf(7, "k", RecordOf("last", kB, 8)));
  Forget();
  EndCommit(absl::UnavailableError("input/output error"));
  EXPECT_EQ(Confirmed(), (std::map<OpId, absl::StatusCode>{{2, absl::StatusCode::kUnavailable},
                                                           {3, absl::StatusCode::kUnavailable}}));
  ASSERT_EQ(commits_.size(), 1u);
  const std::vector<RowCommit>& rows = commits_[0].rows;
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].before, old);
  EXPECT_EQ(Value(rows[0]).versions.at(0).value, "next");
  EXPECT_EQ(rows[1].before, nullptr);
  EXPECT_EQ(rows[2].before, nullptr);
  EXPECT_EQ(rows[3].row_key, RowKeyOf("k"));
  EXPECT_EQ(rows[3].before, rows[0].after) << "on top of the change before it";
  EndCommit();
  EXPECT_EQ(DecodeRecord(*rows_.at(RowKeyOf("k")))->versions.at(0).value, "last");
}

TEST_F(LaneTest, AfterAFailedBatchTheRowIsReadAnew) {
  Turn(StoreOf(1, "k", RecordOf("lost", kB, 6)));
  EndCommit(absl::UnavailableError("input/output error"));
  Forget();
  Turn(FetchOf(2, "k"));
  EXPECT_EQ(reads_, (std::vector<std::vector<std::string>>{{RowKeyOf("k")}}));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(std::get<peer::FetchReply>(sent_[0].batch[0].body).record, nullptr);
}

TEST_F(LaneTest, EachPeerGetsOneBatchATurn) {
  Turn(PutOf(1, "a", "v"), PutOf(2, "b", "v"), FetchOf(70, "c"));
  ASSERT_EQ(sent_.size(), 2u);
  std::map<NodeId, size_t> messages;
  for (const Sent& sent : sent_) messages[sent.to] = sent.batch.size();
  EXPECT_EQ(messages, (std::map<NodeId, size_t>{{kB, 3}, {kC, 2}}));
}

TEST_F(LaneTest, TheRowsOfATurnAreReadInOnePass) {
  rows_[RowKeyOf("a")] = Encoded(RecordOf("v", kB, 7));
  Turn(FetchOf(1, "a"), FetchOf(2, "b"), FetchOf(3, "a"));
  EXPECT_EQ(reads_, (std::vector<std::vector<std::string>>{{RowKeyOf("a"), RowKeyOf("b")}}));
}

TEST_F(LaneTest, ANewerLayoutIsAskedForOnceATurn) {
  FromPeer fetch = FetchOf(1, "a");
  fetch.layout.epoch = 2;
  Turn(fetch, fetch);
  EXPECT_EQ(layouts_wanted_, 1);
}

}  // namespace
}  // namespace gyre
