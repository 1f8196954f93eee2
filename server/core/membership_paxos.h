// The two roles of a single-decree Paxos that chooses the successor of one layout.
// Source: Lamport, "Paxos Made Simple", 2001, section 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "server/core/layout.h"
#include "server/core/membership_messages.h"

namespace gyre {

// Which layout is to be succeeded.
struct LayoutBase {
  uint64_t epoch = 0;
  uint64_t digest = 0;
  bool operator==(const LayoutBase&) const = default;
};

// What a voter must never forget while `base` has no successor.
struct AcceptorState {
  LayoutBase base;
  Ballot promised;         // votes for nothing below
  Ballot accepted_ballot;  // round 0: nothing accepted
  std::optional<Layout> accepted;
  bool operator==(const AcceptorState&) const = default;

  // Answer, and change the state if the answer is yes. A repeated message gets the same answer again. The
  // state must be durable before the answer leaves. REQUIRES: the message is about `base`.
  control::Prepared Step(const control::Prepare& prepare);
  control::Accepted Step(const control::Accept& accept);
};

// One attempt, under one ballot, to have `wanted` chosen, or what was accepted before it.
class Proposer {
 public:
  struct Plan {
    LayoutBase base;
    std::vector<NodeId> voters;  // not empty
    Ballot ballot;               // never used before, by anybody
    Layout wanted;
  };
  explicit Proposer(Plan plan) : plan_(std::move(plan)) {}

  enum class Verdict : uint8_t {
    kPending,
    kAccept,   // a majority promised: Request() is now an Accept, to be sent to all voters
    kRefused,  // somebody promised a higher ballot: try again with one above highest()
    kChosen,   // a majority accepted: value() is chosen for ever
  };
  // Messages of other attempts, of no voter, or that come again, change nothing.
  Verdict Step(NodeId from, const control::Prepared& answer);
  Verdict Step(NodeId from, const control::Accepted& answer);

  // What to send, and to whom: the voters that have not answered it yet.
  control::Body Request() const;
  std::vector<NodeId> Unanswered() const;

  const LayoutBase& base() const { return plan_.base; }
  bool refused() const { return refused_; }
  Ballot highest() const { return highest_; }
  size_t voters() const { return plan_.voters.size(); }
  size_t majority() const { return plan_.voters.size() / 2 + 1; }
  size_t answered() const { return answers_.size(); }
  // True when an Accept of `wanted` itself was, or is about to be, sent.
  bool offers_wanted() const { return value_ && value_ == plan_.wanted; }
  // REQUIRES: kAccept was returned.
  const Layout& value() const { return *value_; }

 private:
  template <typename Answer>
  bool IsNews(NodeId from, const Answer& answer) const;
  Verdict Refuse(NodeId from, Ballot highest);
  size_t Yeses() const;

  Plan plan_;
  std::map<NodeId, bool> answers_;  // of this phase: yes or no
  std::optional<Layout> value_;     // set: the second phase
  Ballot accepted_ballot_;          // of `accepted_`
  std::optional<Layout> accepted_;  // the latest that any promise told of
  Ballot highest_;
  bool refused_ = false;
};

}  // namespace gyre
