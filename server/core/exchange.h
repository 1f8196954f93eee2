// Anti-entropy between two replicas: compares what they share, top down, and moves just the records that
// differ.
//
// This node compares with the members whose id is above its own, so that each pair is compared once. Sums of
// ranges are compared first; an unequal range is split until it is one leaf of the tree; an unequal leaf is
// looked at once more after a while (writes in flight make sums differ for a moment); then the leaf's rows
// are compared by hash, and of each pair that differs the one with the newer vector is sent, once, and
// confirmed. What the receiver's merge holds beyond it comes back. What a stable cut lets go counts as
// absent. A round in which all of that succeeded with every replica proves an exchange (stable_cut.h).
// Source: DeCandia et al., "Dynamo", section 4.7; the tree is storage/merkle.h.
//
// A row that cannot be read, here or there, costs its leaf and no other: the rest is compared, and the range
// stays unequal.
//
// A value driven by its node, like everything in core. One comparison is under way at a time: that is the
// budget. It waits while the disk of either side is behind, so that what is on its way stays bounded. And a
// node compares rows with one peer at a time, asking or asked, for two would bring it the same records: the
// second looks once more when the first is done.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "server/core/message.h"
#include "server/core/replica.h"
#include "server/core/replica_ranges_cache.h"
#include "server/core/turn.h"

namespace gyre {

// What anti-entropy did since the node started. Rising numbers.
struct ExchangeCounters {
  uint64_t ranges_compared = 0;
  uint64_t records_compared = 0;  // by hash
  uint64_t records_sent = 0;
  uint64_t bytes_sent = 0;  // of these records
  uint64_t hash_bytes = 0;  // of sums and row hashes that were sent
  uint64_t rounds = 0;      // that ended
};

class Exchange {
 public:
  // `filling`: this node may have forgotten what it confirmed. Then it compares with every member itself,
  // until it has found all that it shares with each of them equal.
  Exchange(const Replica& replica, OpId first_op, bool filling)
      : replica_(replica), next_op_(OfKind(OpKind::kExchange, first_op)), filling_(filling) {}

  // Starts a round soon, in which everything is compared.
  void Wake(const Turn& turn);
  void RepairNow(const Turn& turn, const gyre::RepairNow& asked);
  void Tick(const Turn& turn);
  std::optional<Micros> next_deadline() const;

  // The initiator's half: answers to what it asked for.
  void SumsRead(const Turn& turn, OpId op, const std::vector<std::optional<RowHash>>& sums);
  void PageRead(const Turn& turn, OpId op, peer::FetchPageReply page);
  void SumsReply(const Turn& turn, NodeId from, OpId op, const peer::CompareSumsReply& reply);
  void RowsReply(const Turn& turn, NodeId from, OpId op, const peer::CompareRowsReply& reply);
  void StoreReply(const Turn& turn, NodeId from, OpId op, const peer::StoreReply& reply);
  void PeerLost(const Turn& turn, NodeId node);
  // While it is, no further rows are asked for.
  void SetDiskIsBehind(bool behind) { disk_is_behind_ = behind; }

  // Other replicas share what is shared from here on: what was exchanged with the ones before proves nothing.
  void ForgetProof() { proves_ = exchanged_ = 0; }

  // A comparison that somebody asks for beside the rounds: of a range, with one peer, soon. `give_only`: this
  // node will drop the range, and wants nothing of it. It ends once, well (all that was found is confirmed)
  // or badly.
  struct Errand {
    OpId id = 0;  // the asker's
    NodeId peer;
    uint32_t keyspace = 0;
    TokenRange range;
    bool give_only = false;
  };
  void Ask(const Turn& turn, Errand errand);
  void CancelErrands(bool give_only);  // those of the one kind
  struct ErrandEnd {
    OpId id = 0;
    bool ok = false;
  };
  std::vector<ErrandEnd> TakeErrandEnds() { return std::exchange(errand_ends_, {}); }

  // All members have confirmed `cut`: a round that begins now and succeeds proves an exchange for it.
  void Confirmed(uint64_t cut) { confirmed_ = cut; }
  // The highest cut for which this node has exchanged with all replicas above it.
  uint64_t exchanged() const { return exchanged_; }

  // The other half: what the peer asked, with this node's own sums or rows at hand. ABORTED: this node
  // compares rows with another.
  void AnswerSums(const Turn& turn, const gyre::SumsRead& read) const;
  void AnswerRows(const Turn& turn, gyre::PageRead read);

  const ExchangeCounters& counters() const { return counters_; }
  // Pairs of range and peer that the last comparison did not find equal, or that were never compared.
  size_t unequal() const { return unequal_.size(); }
  bool filling() const { return filling_; }
  // True while a round is under way or about to begin.
  bool busy() const { return round_ || soon_; }

 private:
  static constexpr Micros kRoundEvery = Seconds(10);
  static constexpr Micros kFillEvery = Seconds(1);
  static constexpr Micros kSoon = Millis(200);
  static constexpr Micros kSecondLook = Millis(500);
  static constexpr Micros kPatience = Seconds(5);
  static constexpr Micros kDiskPause = Millis(50);
  static constexpr Micros kRowsArrive = Millis(500);  // from the last question about rows on
  static constexpr int kLooksMax = 10;                // while the rows of either are compared with another
  static constexpr int kRoundsMax = 4;                // that someone waits for, while writes go on
  static constexpr size_t kWaitingMax = 64;
  // Answers with sums in doubt, in one comparison: so few are leaves that cannot be read; more, and somebody
  // still recounts.
  static constexpr int kDoubtfulMax = 32;
  static constexpr int kLeafBits = 48;  // a leaf of the tree is this many bits of tokens wide
  static constexpr int kFanoutBits = 4;

  using TaskKey = std::tuple<uint64_t, uint32_t, uint64_t, uint64_t>;
  struct Task {
    NodeId peer;
    uint32_t keyspace = 0;
    TokenRange range;
    OpId errand = 0;         // 0: it is part of the round
    bool give_only = false;  // of an errand
    TaskKey Key() const { return {peer.value, keyspace, range.begin.value, range.end.value}; }
  };
  // One task under way.
  struct Work {
    Task task;
    OpId op = 0;                                    // of the question under way
    Micros patience;                                // it is given up then
    std::deque<peer::Slice> frontier;               // to be compared
    std::vector<peer::Slice> asked;                 // compared now
    std::vector<peer::Slice> suspects;              // unequal leaves
    int looks = 0;                                  // at the suspects, after the first
    bool refused = false;                           // the peer compared rows with another
    bool moved = false;                             // rows were compared one by one
    bool skipped = false;                           // a leaf could not be read, here or there
    int doubtful = 0;                               // answers with sums in doubt
    std::optional<Micros> rows_at;                  // when rows are asked for, if a disk is behind now
    std::optional<Micros> look_at;                  // when the suspects are looked at again
    std::deque<peer::Slice> leaves;                 // whose rows are to be compared
    std::string after;                              // row key up to which the first leaf was compared
    std::string end;                                // where it ends
    std::string page_end;                           // where the page that is compared ends
    std::string covered_to;                         // what is compared of it
    std::vector<Row> rows;                          // of it, as told to the peer
    uint64_t cut = 0;                               // under which they were read
    std::set<std::pair<OpId, NodeId>> unconfirmed;  // rows that were sent
    bool succeeded = true;                          // all that was found is confirmed
  };

  // Someone waits for the end of a round.
  struct Waiting {
    Ticket ticket;
    Micros deadline;
    int rounds = 0;  // that began since
  };

  void BeginRound(const Turn& turn);
  void EndRound(const Turn& turn);
  void NextTask(const Turn& turn);
  void Begin(const Turn& turn, const Task& task);
  void EndErrand(const Turn& turn, bool ok);
  void NextQuestion(const Turn& turn);
  void AskSums(const Turn& turn);
  bool TakeDoubt(const Turn& turn);
  void Descend(const peer::Slice& slice);
  void AskRows(const Turn& turn);
  void AskRowsLater(const Turn& turn);
  void SkipLeaf(const Turn& turn);
  void EndTask(const Turn& turn, bool equal);
  void Abandon(const Turn& turn);
  void LookLater(const Turn& turn);
  void LookAgain(const Turn& turn);
  bool ComparesRowsWithAnother(const Turn& turn, NodeId than) const;
  OpId NewOp(const Turn& turn);
  void SendRow(const Turn& turn, NodeId to, const std::string& row_key, const CutRecord& record);
  void TakeRow(const Turn& turn, const Row* own, const Row& row, uint64_t cut);
  void EndPage(const Turn& turn);
  std::vector<Row> Lasting(std::vector<Row> rows) const;

  const Replica& replica_;
  OpId next_op_;
  ReplicaRangesCache ranges_;
  uint64_t confirmed_ = 0;
  uint64_t proves_ = 0;  // the round under way, if it succeeds
  uint64_t exchanged_ = 0;
  bool round_ = false;
  bool soon_ = true;
  Micros round_at_;         // when the next round begins
  std::deque<Task> tasks_;  // of the round
  std::deque<Task> errands_;
  std::vector<ErrandEnd> errand_ends_;
  std::optional<Work> work_;
  NodeId rows_with_;  // the last peer that rows were compared with, whose records arrive until then
  Micros rows_until_;
  std::vector<Waiting> waiting_;
  bool disk_is_behind_ = false;
  bool filling_;
  std::set<TaskKey> shared_;  // in the last round
  std::set<TaskKey> filled_;  // while filling: found equal since it began
  std::set<TaskKey> compared_;
  std::set<TaskKey> unequal_;
  ExchangeCounters counters_;
};

}  // namespace gyre
