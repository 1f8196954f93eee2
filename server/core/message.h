// What goes into a node and what comes out: inputs, messages between nodes, obligations. Only values.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ring/token.h"
#include "server/core/call.h"
#include "server/core/layouts.h"
#include "server/core/time.h"
#include "storage/causal/actor_clock.h"
#include "storage/format/record_codec.h"

namespace gyre {

// Names a client's call on this node; chosen by whoever pushes it, answered once.
struct Ticket {
  uint64_t value = 0;
  auto operator<=>(const Ticket&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, Ticket t) {
    return H::combine(std::move(h), t.value);
  }
};

// Names an operation of one node in one life of it. Answers carry it back to the asker.
using OpId = uint64_t;

// The highest two bits of an operation say what it is a part of.
enum class OpKind : uint8_t { kCall = 0, kExchange, kHandoff, kMovement };
inline constexpr int kOpKindShift = 62;
inline OpKind KindOf(OpId op) { return static_cast<OpKind>(op >> kOpKindShift); }
inline OpId OfKind(OpKind kind, OpId op) { return op | static_cast<OpId>(kind) << kOpKindShift; }

struct Row {
  std::string row_key;
  RecordBytes record;
};

// The asker does not know a layout that the other works by, or reads by one that the other reads by no more.
inline constexpr absl::StatusCode kWrongLayout = absl::StatusCode::kAborted;

// The messages between nodes, as in proto/peer.proto.
namespace peer {
struct Forward {
  Call call;
  Micros timeout;
};
struct ForwardReply {
  CallResult result;
};
struct StoreRow {
  std::string row_key;
  RecordBytes record;
  uint64_t cut = 0;          // the stable cut under which the record was read
  NodeId hint_for;           // set: the receiver is a fallback
  bool repair = false;       // nobody waits for the answer
  bool return_more = false;  // what the receiver's merge holds beyond it is to be sent back
};
struct StoreReply {
  // OUT_OF_RANGE: nothing in it is news above the receiver's stable cut, and it was read under a lower one.
  absl::StatusCode code = absl::StatusCode::kOk;
  bool more = false;  // the receiver holds more than it was sent
};
struct FetchRow {
  std::string row_key;
  NodeId hint_for;  // set: the receiver is a fallback; NOT_FOUND when it holds nothing for that node
};
struct FetchReply {
  absl::StatusCode code = absl::StatusCode::kOk;
  RecordBytes record;  // nullptr: no row
  uint64_t cut = 0;    // the stable cut under which it was read
};
struct FetchPage {
  static constexpr uint32_t kBytesMax = 1 << 20;
  std::string after;  // row key, exclusive
  std::string end;    // row key, exclusive
  uint32_t rows_max = 0;
  uint32_t bytes_max = 0;
  bool skip_damage = false;  // rows that cannot be read are passed over; else they fail the page. Not sent
  bool move = false;         // for a new replica of what lies between (movement.h)
};
struct FetchPageReply {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::vector<Row> rows;
  bool complete = false;  // there is nothing more before `end`
  bool skipped = false;   // something was passed over that cannot be read
  uint64_t cut = 0;       // the stable cut under which it was read
};

// Anti-entropy (exchange.h).
struct Slice {
  uint32_t keyspace = 0;
  Token begin;  // tokens in (begin, end]; begin == end: the whole ring
  Token end;
};
struct CompareSums {
  static constexpr size_t kSlicesMax = 256;
  std::vector<Slice> slices;
  std::vector<RowHash> sums;  // of the sender's rows, one a slice
};
struct CompareSumsReply {
  std::vector<uint32_t> unequal;  // places in `slices`
  bool in_doubt = false;          // the receiver does not know some of its sums yet
  bool filling = false;           // the receiver has lost its store
};
struct RowDigest {
  std::string row_key;
  RowHash hash;
  uint64_t newest = 0;  // the highest counter of its vector
};
struct CompareRows {
  std::string after;            // row key, exclusive
  std::string end;              // row key, exclusive
  std::vector<RowDigest> rows;  // all that the sender has in between
  bool give_only = false;       // it will drop them: only what the receiver lacks travels
};
struct CompareRowsReply {
  absl::StatusCode code = absl::StatusCode::kOk;  // ABORTED, RESOURCE_EXHAUSTED: later
  std::string covered_to;                         // row key, exclusive
  std::vector<std::string> wanted;                // row keys of the sender's rows that the receiver lacks
  std::vector<Row> rows;                          // of the receiver, that the sender lacks
  uint64_t cut = 0;                               // the stable cut under which these were read
};

// What a node says of stable cuts (stable_cut.h). Each number is a counter, and stays true once it was said,
// but for the cut of a node that loses its store.
struct CutState {
  uint64_t wall_ms = 0;  // its clock
  uint64_t ready = 0;    // its clock is above this
  uint64_t confirmed =
      0;  // it has promised to take nothing at or below this, but as a replica from a replica
  uint64_t exchanged = 0;  // since all confirmed this, it exchanged with every replica above it
  uint64_t cut = 0;        // it holds this cut
  uint64_t all = 0;        // it knows that all members held this
  bool filling = false;
};
}  // namespace peer

struct Message {
  OpId op = 0;
  std::variant<peer::Forward, peer::ForwardReply, peer::StoreRow, peer::StoreReply, peer::FetchRow,
               peer::FetchReply, peer::FetchPage, peer::FetchPageReply, peer::CompareSums,
               peer::CompareSumsReply, peer::CompareRows, peer::CompareRowsReply, peer::CutState>
      body;
};

struct RowEntry;

// One change of one row, to be made durable. The lane hands it back in Committed.
struct RowCommit {
  NodeId asked_by;  // who is told when it is durable; zero: nobody
  OpId op = 0;      // the asker's
  std::string row_key;
  RecordBytes before;  // nullptr: there was no row
  RecordBytes after;
  bool more = false;        // for the answer: `after` is more than the asker sent
  RowEntry* row = nullptr;  // in the row table, where it stays until then
};

// Inputs.
struct ClientCall {
  Ticket ticket;
  Call call;
  Micros deadline;
};
struct FromPeer {
  NodeId from;
  LayoutMark layout;
  Message message;
};
// Answers to Outbox::reads.
struct RowRead {
  std::string row_key;
  absl::StatusOr<RecordBytes> record;  // nullptr: no row
};
// A page of rows to be read, and for what.
struct PageRequest {
  enum class Use : uint8_t { kFetch, kExchange, kCompare, kHandoff, kCollect, kDrop };
  NodeId asked_by;
  OpId op = 0;
  Use use = Use::kFetch;
  peer::FetchPage page;
  peer::CompareRows asked;  // for kCompare: what the peer said of its rows
};
// Answer to Outbox::page_reads.
struct PageRead {
  PageRequest request;
  peer::FetchPageReply reply;
};
// Merkle sums to be read: this node's own question, or with `asked` a peer's.
struct SumRequest {
  NodeId asked_by;
  OpId op = 0;
  std::vector<peer::Slice> slices;
  std::optional<std::vector<RowHash>> asked;  // the peer's sums
};
// Answer to Outbox::sum_reads. nullopt: the sum is in doubt for now.
struct SumsRead {
  SumRequest request;
  std::vector<std::optional<RowHash>> sums;
};
// The outcome of one batch of Outbox::commits.
struct Committed {
  absl::Status status;
  std::vector<RowCommit> rows;
  std::optional<ActorState> actor;
  std::optional<CutMarks> cuts;
  bool moves = false;  // it held Outbox::moves
};
struct PeerUp {
  NodeId node;
};
struct PeerDown {
  NodeId node;
};
struct NewLayouts {
  Layouts layouts;
};
// Whether the disk takes writes: RESOURCE_EXHAUSTED or UNAVAILABLE with a sentence while it does not.
struct StoreHealth {
  absl::Status status;
};
// No more calls from clients; finish what is under way.
struct Drain {};
// Compare everything with the other replicas now. With a ticket: OK once a round that began later found all
// equal, or has made equal what it could; UNAVAILABLE at the deadline.
struct RepairNow {
  std::optional<Ticket> ticket;
  Micros deadline;
};
// A write of this node's own that waited for its row.
struct ResumeWrite {
  OpId op = 0;
};

// Answered OK when all hints of now are delivered and all members are up, or at the deadline.
struct AwaitHints {
  Ticket ticket;
  Micros deadline;
};
// A hint that is being delivered, and waited for a row.
struct ResumeHint {
  OpId op = 0;
};

// A row that is to be collected, and was not in hand.
struct ResumeCollect {
  OpId op = 0;
};

// What an operator may set while data moves; kept over restarts of the node.
struct MoveControl {
  bool paused = false;
  uint64_t bytes_per_second = 0;  // 0: the default
  bool operator==(const MoveControl&) const = default;
};

// A row that is to be dropped, and was not in hand.
struct ResumeDrop {
  OpId op = 0;
};
struct ControlMoves {
  std::optional<bool> paused;
  std::optional<uint64_t> bytes_per_second;
};

using Input = std::variant<ClientCall, FromPeer, RowRead, PageRead, Committed, PeerUp, PeerDown, NewLayouts,
                           StoreHealth, Drain, ResumeWrite, SumsRead, RepairNow, AwaitHints, ResumeHint,
                           ResumeCollect, ResumeDrop, ControlMoves>;

// Everything the core wants done, in order. Filled by Step and Tick, emptied by the lane.
struct Outbox {
  struct Send {
    NodeId to;
    Message message;
  };
  struct Reply {
    Ticket ticket;
    CallResult result;
  };
  std::vector<Send> sends;              // may leave before the commits are durable
  std::vector<std::string> reads;       // row keys; each answered by a RowRead
  std::vector<PageRequest> page_reads;  // each answered by a PageRead
  std::vector<SumRequest> sum_reads;    // each answered by a SumsRead
  std::vector<RowCommit> commits;       // one batch with what else waits; answered by a Committed
  std::optional<ActorState> actor;      // to be made durable with the next batch
  std::optional<CutMarks> cuts;         // the same
  std::optional<std::string> moves;     // the same (movement_codec.h)
  std::vector<std::string> stale;       // collect keys of no row, to be erased with the next batch
  std::vector<Reply> replies;
  NodeId layout_wanted_from;  // set: this peer knows more of the layouts
  bool filled = false;        // this node is filling no more: to be made durable
};

}  // namespace gyre
