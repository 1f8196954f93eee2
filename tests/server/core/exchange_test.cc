// Anti-entropy between nodes driven by hand: what differs is sent, once, and nothing else.
#include "server/core/exchange.h"

#include <deque>
#include <gtest/gtest.h>
#include <map>

#include "server/core/node.h"
#include "storage/format/row_key.h"
#include "tests/server/core/turns.h"

namespace gyre {
namespace {

using Rows = std::map<std::string, RecordBytes>;

// Some of the three nodes with rows in a map, messages that arrive in order, and a clock that jumps to the
// next deadline.
class Replicas {
 public:
  explicit Replicas(const std::vector<NodeId>& ids, NodeId filling = {}) : view_(ThreeNodes()) {
    for (const NodeId id : ids) {
      Side& side = sides_[id];
      side.node = std::make_unique<Node>(Node::Config{.self = id, .filling = id == filling},
                                         ActorClock(id.value, std::nullopt, Now().wall_ms));
      Step(id, NewLayouts{{view_}});
    }
    for (const NodeId id : ids) {
      for (const NodeId peer : ids) {
        if (peer != id) Step(id, PeerUp{peer});
      }
    }
  }

  void Put(NodeId id, int key, const Record& record) { sides_[id].rows[KeyOf(key)] = Encoded(record); }
  const Rows& rows(NodeId id) { return sides_[id].rows; }
  const Exchange& exchange(NodeId id) { return sides_[id].node->exchange(); }
  uint64_t sent() {
    uint64_t sent = 0;
    for (const auto& [id, side] : sides_) sent += exchange(id).counters().records_sent;
    return sent;
  }
  void DoubtSums(NodeId id, bool doubt) { sides_[id].in_doubt = doubt; }

  // Until node A, which compares with all others, ended `rounds` rounds more.
  void Rounds(uint64_t rounds) {
    const uint64_t end = exchange(kA).counters().rounds + rounds;
    for (int steps = 0; exchange(kA).counters().rounds < end; ++steps) {
      ASSERT_LT(steps, 100'000) << "the rounds do not end";
      if (to_step_.empty()) {
        std::optional<Micros> next;
        for (const auto& [id, side] : sides_) {
          const std::optional<Micros> deadline = side.node->next_deadline();
          if (deadline) next = next ? std::min(*next, *deadline) : deadline;
        }
        now_ = std::max(now_, *next);
        for (auto& [id, side] : sides_) {
          side.node->Tick(Now(), side.out);
          Carry(id);
        }
      } else {
        auto [id, input] = std::move(to_step_.front());
        to_step_.pop_front();
        Step(id, std::move(input));
      }
    }
  }

 private:
  struct Side {
    std::unique_ptr<Node> node;
    Rows rows;
    Outbox out;
    bool in_doubt = false;
  };

  static std::string KeyOf(int key) {
    const std::string name = "k" + std::to_string(key);
    return MakeRowKey(1, TokenOf(name).value, name);
  }
  struct Now Now() const {
    return {.steady = now_, .wall_ms = 1'000'000 + static_cast<uint64_t>(now_.value / 1000)};
  }

  void Step(NodeId id, Input input) {
    sides_[id].node->Step(Now(), std::move(input), sides_[id].out);
    Carry(id);
  }

  // Does at once what a node wants done; what that leads to is stepped later, in order.
  void Carry(NodeId id) {
    Side& side = sides_[id];
    Outbox out = std::exchange(side.out, {});
    for (const std::string& row_key : out.reads) {
      const auto row = side.rows.find(row_key);
      to_step_.emplace_back(id, RowRead{row_key, row == side.rows.end() ? nullptr : row->second});
    }
    for (PageRequest& request : out.page_reads) {
      peer::FetchPageReply reply = {.complete = true};
      for (auto row = side.rows.upper_bound(request.page.after);
           row != side.rows.end() && row->first < request.page.end; ++row) {
        if (reply.rows.size() == 3) {  // small pages, so that leaves take several
          reply.complete = false;
          break;
        }
        reply.rows.push_back({row->first, row->second});
      }
      to_step_.emplace_back(id, PageRead{std::move(request), std::move(reply)});
    }
    for (SumRequest& request : out.sum_reads) {
      SumsRead read = {.request = std::move(request)};
      for (const peer::Slice& slice : read.request.slices) {
        read.sums.push_back(side.in_doubt ? std::nullopt : std::optional(SumOf(side.rows, slice)));
      }
      to_step_.emplace_back(id, std::move(read));
    }
    if (!out.commits.empty() || out.actor || out.cuts) {
      for (const RowCommit& row : out.commits) side.rows[row.row_key] = row.after;
      to_step_.emplace_back(id, Committed{absl::OkStatus(), std::move(out.commits), out.actor, out.cuts,
                                          out.moves.has_value()});
    }
    for (Outbox::Send& send : out.sends) {
      if (sides_.contains(send.to))
        to_step_.emplace_back(send.to, FromPeer{id, {1}, std::move(send.message)});
    }
  }

  static RowHash SumOf(const Rows& rows, const peer::Slice& slice) {
    RowHash sum;
    const TokenRange range = {slice.begin, slice.end};
    const bool wraps = slice.end <= slice.begin;
    auto row = wraps ? rows.begin() : rows.lower_bound(RowKeyFloor(slice.keyspace, slice.begin.value + 1));
    for (; row != rows.end(); ++row) {
      RowKeyParts parts;
      ParseRowKey(row->first, parts);
      if (!wraps && parts.token > slice.end.value) break;
      if (range.Contains(Token{parts.token})) sum += HashRow(row->first, *row->second);
    }
    return sum;
  }

  std::shared_ptr<const View> view_;
  Micros now_ = Seconds(1);
  std::map<NodeId, Side> sides_;
  std::deque<std::pair<NodeId, Input>> to_step_;
};

TEST(Exchange, SendsNothingBetweenEqualReplicas) {
  Replicas pair({kA, kB});
  for (int key = 0; key < 200; ++key) {
    pair.Put(kA, key, RecordOf("same", kA, 100));
    pair.Put(kB, key, RecordOf("same", kA, 100));
  }
  pair.Rounds(2);
  EXPECT_EQ(pair.sent(), 0u);
  EXPECT_EQ(pair.exchange(kA).counters().records_compared, 0u);
  EXPECT_EQ(pair.exchange(kA).unequal(),
            1u);  // with the third node, which is not there, nothing was compared
}

TEST(Exchange, SendsEachRecordThatDiffersOnceAndToTheSideThatLacksIt) {
  Replicas pair({kA, kB});
  for (int key = 0; key < 300; ++key) {
    pair.Put(kA, key, RecordOf("old", kA, 100));
    pair.Put(kB, key, RecordOf("old", kA, 100));
  }
  for (int key = 0; key < 10; ++key) pair.Put(kA, key, RecordOf("new", kA, 200));      // newer at A
  for (int key = 10; key < 20; ++key) pair.Put(kB, key, RecordOf("new", kA, 200));     // newer at B
  for (int key = 300; key < 307; ++key) pair.Put(kA, key, RecordOf("only", kA, 300));  // only at A
  for (int key = 307; key < 314; ++key) pair.Put(kB, key, RecordOf("only", kB, 300));  // only at B
  pair.Rounds(3);
  EXPECT_EQ(pair.sent(), 34u);
  EXPECT_EQ(pair.rows(kA).size(), 314u);
  for (const auto& [row_key, record] : pair.rows(kA)) EXPECT_EQ(*pair.rows(kB).at(row_key), *record);
  pair.Rounds(2);
  EXPECT_EQ(pair.sent(), 34u);
}

TEST(Exchange, ConcurrentVersionsEndUpOnBothSides) {
  Replicas pair({kA, kB});
  pair.Put(kA, 1, RecordOf("a", kA, 100));
  pair.Put(kB, 1, RecordOf("b", kB, 200));
  pair.Rounds(3);
  const RecordBytes a = pair.rows(kA).begin()->second;
  EXPECT_EQ(*a, *pair.rows(kB).begin()->second);
  EXPECT_EQ(DecodeRecord(*a)->versions.size(), 2u);
  EXPECT_EQ(pair.sent(), 2u);  // B's; and what A's merge held beyond it
}

TEST(Exchange, ASumInDoubtProvesNothingAndMovesNothing) {
  Replicas pair({kA, kB});
  pair.Put(kA, 1, RecordOf("a", kA, 100));
  pair.DoubtSums(kB, true);
  pair.Rounds(2);
  EXPECT_EQ(pair.sent(), 0u);
  EXPECT_EQ(pair.exchange(kA).unequal(), 2u);
  pair.DoubtSums(kB, false);
  pair.Rounds(3);
  EXPECT_EQ(pair.sent(), 1u);
  EXPECT_EQ(pair.exchange(kA).unequal(), 1u);
}

// The pairs are compared at the same time, and a replica that is behind could be told by both others.
TEST(Exchange, TwoPeersNeverSendAReplicaTheSameRecord) {
  for (const NodeId behind : {kA, kB, kC}) {
    Replicas all({kA, kB, kC});
    for (int key = 0; key < 300; ++key) {
      for (const NodeId id : {kA, kB, kC}) {
        const bool missed = id == behind && key < 20;
        all.Put(id, key, missed ? RecordOf("old", kA, 100) : RecordOf("new", kA, 200));
      }
    }
    all.Rounds(4);
    EXPECT_EQ(all.sent(), 20u) << ToString(behind);
    for (const NodeId id : {kA, kB, kC}) {
      EXPECT_EQ(all.exchange(id).unequal(), 0u) << ToString(behind) << " at " << ToString(id);
      for (const auto& [row_key, record] : all.rows(id)) EXPECT_EQ(*all.rows(kA).at(row_key), *record);
    }
  }
}

// It compares with all others itself, while they compare with it.
TEST(Exchange, AFillingReplicaIsSentEachRecordOnce) {
  for (const NodeId filling : {kA, kB, kC}) {
    Replicas all({kA, kB, kC}, filling);
    for (int key = 0; key < 300; ++key) {
      for (const NodeId id : {kA, kB, kC}) {
        if (id != filling) all.Put(id, key, RecordOf("value", kA, 100));
      }
    }
    all.Rounds(6);
    EXPECT_EQ(all.sent(), 300u) << ToString(filling);
    EXPECT_FALSE(all.exchange(filling).filling()) << ToString(filling);
    for (const NodeId id : {kA, kB, kC}) EXPECT_EQ(all.exchange(id).unequal(), 0u) << ToString(filling);
  }
}

// Each of the others must be told, once, whatever it hears from the third.
TEST(Exchange, AReplicaThatIsAheadSendsEachOtherOneCopy) {
  for (const NodeId ahead : {kA, kB, kC}) {
    Replicas all({kA, kB, kC});
    for (int key = 0; key < 300; ++key) {
      for (const NodeId id : {kA, kB, kC}) {
        const bool news = id == ahead && key < 20;
        all.Put(id, key, news ? RecordOf("new", kA, 200) : RecordOf("old", kA, 100));
      }
    }
    all.Rounds(4);
    EXPECT_EQ(all.sent(), 40u) << ToString(ahead);
    for (const NodeId id : {kA, kB, kC}) EXPECT_EQ(all.exchange(id).unequal(), 0u);
  }
}

// What is told to find the difference grows with the difference.
TEST(Exchange, HashesAreOfWhatDiffersOnly) {
  constexpr int kKeys = 20'000;
  for (const int differences : {0, 1, 100}) {
    Replicas pair({kA, kB});
    for (int key = 0; key < kKeys; ++key) {
      pair.Put(kA, key, RecordOf("same", kA, 100));
      pair.Put(kB, key, key < differences ? RecordOf("new", kA, 200) : RecordOf("same", kA, 100));
    }
    pair.Rounds(2);
    const ExchangeCounters& counters = pair.exchange(kA).counters();
    EXPECT_EQ(pair.sent(), static_cast<uint64_t>(differences));
    EXPECT_EQ(pair.exchange(kA).unequal(), 1u);  // the third node is not there
    // Four levels of 16 sums, twice at the leaf, and the rows of that.
    EXPECT_LE(counters.hash_bytes, 64u + static_cast<uint64_t>(differences) * 2600u);
    EXPECT_LE(counters.records_compared, static_cast<uint64_t>(differences) * 3u);
  }
}

}  // namespace
}  // namespace gyre
