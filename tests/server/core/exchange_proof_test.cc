// What a round of comparisons proves for the stable cut, and what it does not.
#include "tests/server/core/comparing_node.h"

namespace gyre {
namespace {

bool Holds(const peer::Slice& slice, Token token) {
  return slice.begin == slice.end ||
         token.value - slice.begin.value - 1 < slice.end.value - slice.begin.value;
}

// A, which compares with B and C, before a round for a cut that all have confirmed.
struct ExchangeProof : ComparingNodeTest {
  void SetUp() override {
    cuts = {.confirmed = kNow};
    Restart(std::nullopt);
    disk[RowKeyOf("k")] = Encoded(RecordOf("v", kB, kNow - 5));
    TickAfter(Seconds(6));  // what was under way is given up
    CompareAllEqual();
    BothSay({.ready = kNow, .confirmed = kNow});
    Live(Seconds(1));
    Sent();
    ASSERT_EQ(cut_said.exchanged, 0u);
  }
  void BeginRound() {
    TickAfter(Seconds(10));
    ASSERT_FALSE(out.sum_reads.empty());
  }
  // What the round that is under way proves when it ends.
  uint64_t Proved() {
    const uint64_t rounds = node->exchange().counters().rounds;
    while (node->exchange().counters().rounds == rounds) {
      TickAfter(Millis(500));
      CompareAllEqual();
    }
    Live(Seconds(2));
    return cut_said.exchanged;
  }
  // B lacks the row, and answers so when it is sent it.
  uint64_t ProvedWhenBAnswers(const peer::StoreReply& stored) {
    bool sent = false;
    BeginRound();
    for (int look = 0; look < 2; ++look) {
      Compare([&](const Outbox::Send& send) {
        const OpId op = send.message.op;
        if (const auto* sums = std::get_if<peer::CompareSums>(&send.message.body)) {
          peer::CompareSumsReply reply;
          for (uint32_t i = 0; i < sums->slices.size(); ++i) {
            if (send.to == kB && Holds(sums->slices[i], TokenOf("k"))) reply.unequal.push_back(i);
          }
          Answer(send.to, op, std::move(reply));
        } else if (const auto* rows = std::get_if<peer::CompareRows>(&send.message.body)) {
          Answer(send.to, op, peer::CompareRowsReply{.covered_to = rows->end, .wanted = {RowKeyOf("k")}});
        } else if (std::holds_alternative<peer::StoreRow>(send.message.body)) {
          sent = true;
          Answer(send.to, op, stored);
        }
      });
      if (look == 0) TickAfter(Millis(500));  // it looks twice at what is not equal
    }
    EXPECT_TRUE(sent);
    Live(Seconds(2));
    return cut_said.exchanged;
  }
};

TEST_F(ExchangeProof, AnAnswerThatCoversNothingIsNotAskedForAgain) {
  int asked = 0;
  BeginRound();
  for (int look = 0; look < 2; ++look) {
    Compare([&](const Outbox::Send& send) {
      if (const auto* sums = std::get_if<peer::CompareSums>(&send.message.body)) {
        peer::CompareSumsReply reply;
        for (uint32_t i = 0; i < sums->slices.size(); ++i) {
          if (send.to == kB && Holds(sums->slices[i], TokenOf("k"))) reply.unequal.push_back(i);
        }
        Answer(send.to, send.message.op, std::move(reply));
      } else if (const auto* rows = std::get_if<peer::CompareRows>(&send.message.body)) {
        ASSERT_LT(++asked, 3);
        Answer(send.to, send.message.op, peer::CompareRowsReply{.covered_to = rows->after + '\0'});
      }
    });
    if (look == 0) TickAfter(Millis(500));  // it looks twice at what is not equal
  }
  EXPECT_EQ(asked, 1);
}

TEST_F(ExchangeProof, WhenAllIsEqual) {
  BeginRound();
  EXPECT_EQ(Proved(), kNow);
}

TEST_F(ExchangeProof, WhenWhatWasLackedIsConfirmed) { EXPECT_EQ(ProvedWhenBAnswers({}), kNow); }

TEST_F(ExchangeProof, NotWhenARowWasNotConfirmed) {
  EXPECT_EQ(ProvedWhenBAnswers({.code = absl::StatusCode::kResourceExhausted}), 0u);
}

TEST_F(ExchangeProof, NotWhenARowIsBelowTheCutOfThePeer) {
  EXPECT_EQ(ProvedWhenBAnswers({.code = absl::StatusCode::kOutOfRange}), 0u);
}

TEST_F(ExchangeProof, NotWhenThePeerHoldsMore) { EXPECT_EQ(ProvedWhenBAnswers({.more = true}), 0u); }

TEST_F(ExchangeProof, NotWhenAPeerIsAway) {
  Step(PeerDown{kC});
  BeginRound();
  EXPECT_EQ(Proved(), 0u);
}

TEST_F(ExchangeProof, NotWhenAPeerGoesAway) {
  BeginRound();
  Step(PeerDown{kB});
  EXPECT_EQ(Proved(), 0u);
}

TEST_F(ExchangeProof, NotWhenAPeerDoesNotAnswer) {
  BeginRound();
  TickAfter(Seconds(6));
  EXPECT_EQ(Proved(), 0u);
}

TEST_F(ExchangeProof, NotWhenAPeerFills) {
  BeginRound();
  Compare([&](const Outbox::Send& send) {
    if (!std::holds_alternative<peer::CompareSums>(send.message.body)) return;
    Answer(send.to, send.message.op, peer::CompareSumsReply{.filling = send.to == kC});
  });
  Live(Seconds(2));
  EXPECT_EQ(cut_said.exchanged, 0u);
}

}  // namespace
}  // namespace gyre
