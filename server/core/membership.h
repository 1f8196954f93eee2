// Membership: how nodes find each other, form one cluster, and agree on the line of layouts.
//
// Driven and never drives: no clock, thread, socket or file. The same inputs at the same times give the same
// outbox. NOT thread-safe: one control loop owns it. What it hands out through `view` is immutable and may be
// shared.
//
// Forming: every node gossips to its seeds. A node that knows exactly K = bootstrap_expect nodes, all naming
// the same K, durably promises to form a cluster of just these, and promises nothing else ever; with the
// promises of all K the first layout is a pure function of them. So two clusters never form out of
// overlapping nodes. Changing: a layout's successor is chosen by a single-decree Paxos among its voters
// (Lamport, "Paxos Made Simple"). Moving: a layout that moves data is active beside its base until enough
// members have taken their steps (membership_moves.h).
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/core/failure_detector.h"
#include "server/core/layout.h"
#include "server/core/membership_book.h"
#include "server/core/membership_change.h"
#include "server/core/membership_codec.h"
#include "server/core/membership_formation.h"
#include "server/core/membership_messages.h"
#include "server/core/membership_moves.h"
#include "server/core/membership_paxos.h"
#include "server/core/time.h"

namespace gyre {

// Everything membership wants done, in order. Filled by its methods, emptied by the control loop.
struct MembershipOutbox {
  struct Send {
    std::string to_address;
    control::Message message;
  };
  // All of these must be durable, in order, before anything else in this outbox is acted on and before the
  // next input. Keys begin with kMetaMembership.
  struct Persist {
    std::string key;
    std::string value;
  };
  struct Answer {
    uint64_t ticket;
    absl::Status status;
    std::shared_ptr<const View> view;  // when OK: one that holds the change
  };
  std::vector<Persist> persists;
  std::vector<Send> sends;
  std::vector<Answer> answers;
  std::vector<std::string> log;        // sentences for the log: what changed, what an operator must do
  std::optional<Layouts> new_layouts;  // set when something about the active layouts has changed
  std::string removed;                 // not empty: this node must end, and why
};

class Membership {
 public:
  static constexpr size_t kChangesMax = 64;  // that wait at one node; beyond: RESOURCE_EXHAUSTED

  struct Config {
    NodeInfoValue self;  // heartbeat and facts are filled in here; the generation is raised if it must be
    std::vector<std::string> seeds;  // peer addresses; may name this node, or nobody
    int bootstrap_expect = 1;        // at least 1
    uint64_t random_seed = 0;        // jitter of ballots, and whom to gossip to
    bool auto_join = false;          // nodes that are no members are added by themselves
  };
  // `persisted`: what Persist wrote in earlier lives, by key. When that cannot be read `*status` is DATA_LOSS
  // (or UNIMPLEMENTED, if a later version wrote it), and this object is good for nothing.
  Membership(Config config, const std::map<std::string, std::string>& persisted, absl::Status* status);

  // What is to be persisted, as a key and its value, by a node that belongs to a cluster when its store was
  // lost or lacks something: it may not remember its votes, and gives none that could contradict them.
  static std::pair<std::string, std::string> VotesForgotten();

  void Step(Now now, const control::Message& message, MembershipOutbox& out);
  // Answered by its deadline. OK: the change is in the answer's view and all later ones. An error of Apply:
  // it cannot be made. UNAVAILABLE: nothing was changed. UNKNOWN: it may yet take effect. RESOURCE_EXHAUSTED:
  // too many changes wait.
  void Change(Now now, LayoutChange change, MembershipOutbox& out);
  void Tick(Now now, MembershipOutbox& out);  // gossip, retries, deadlines, steps
  Micros next_deadline() const;               // when Tick has something to do
  // The lane heard that `peer` knows more of the layouts.
  void WantLayout(Now now, NodeId peer, MembershipOutbox& out);

  void SetFacts(NodeFactsValue facts) { facts_ = std::move(facts); }  // layout_epoch is filled in here
  void SetLaneSteps(LaneSteps steps) { lane_ = steps; }               // looked at by the next Step or Tick

  // The newest active layout, or nullptr before the cluster has formed (or this node has heard of it).
  const std::shared_ptr<const View>& view() const { return moves_.view(); }
  const Layouts& layouts() const { return moves_.layouts(); }
  // How far the members are known to be with the newest layout, if it moves data.
  std::vector<control::MemberStep> steps() const { return moves_.steps(); }
  // Not empty: this node was a member, and has no part in the cluster any more. A sentence for the operator.
  std::string removed() const;
  // All nodes heard of, by id, this one included; remembered over restarts.
  const std::map<NodeId, NodeInfoValue>& known() const { return book_.nodes(); }
  // When a node was last heard of (a heartbeat newer than before); nullopt: never in this life.
  std::optional<Micros> last_heard(NodeId node) const { return book_.last_heard(node); }
  // Which members this node was not told of for too long. It steers routing only.
  const FailureDetector& detector() const { return detector_; }
  // What keeps the cluster from forming; empty once it has.
  std::string obstacle() const { return view() ? "" : formation_.Obstacle(book_.nodes()); }

 private:
  // A change and what may have become of it: set when voters were asked to accept a layout with it, and
  // neither that one nor another is known to be chosen.
  struct Pending {
    struct Offer {
      uint64_t epoch = 0;
      uint64_t digest = 0;
    };
    LayoutChange change;
    std::optional<Offer> offer;
    bool unasked = false;  // nobody waits for an answer
  };
  // Something this node would do by itself, if nobody else does.
  struct Intent {
    size_t kind = 0;  // of LayoutChange::What
    uint64_t epoch = 0;
    Micros since;
  };
  struct Sender {
    NodeId id;
    const std::string& address;
  };

  absl::Status Load(const std::map<std::string, std::string>& persisted);
  NodeId self() const { return book_.self().id; }
  uint64_t epoch() const { return view() ? view()->layout.epoch : 0; }
  bool Admit(Now now, const control::Message& message, MembershipOutbox& out);
  void Settle(Now now, MembershipOutbox& out);
  void Form(Now now, MembershipOutbox& out);
  absl::Status LoadLayouts(const std::map<std::string, std::string>& persisted);
  absl::StatusOr<std::shared_ptr<const View>> CheckOther(const control::LayoutPush& push) const;
  bool Install(Now now, Sender from, const control::LayoutPush& push, MembershipOutbox& out);
  control::LayoutPush MakePush() const;
  void Announce(MembershipOutbox& out);
  void SendTo(Sender to, control::Body body, MembershipOutbox& out);
  void LogOncePerMinute(Now now, NodeId sender, std::string sentence, MembershipOutbox& out);

  void Receive(Now now, Sender from, const control::Hello& hello, MembershipOutbox& out);
  void Receive(Now now, Sender from, const control::FormationPromise& promise, MembershipOutbox& out);
  void Receive(Now now, Sender from, const control::Prepare& prepare, MembershipOutbox& out);
  void Receive(Now now, Sender from, const control::Prepared& prepared, MembershipOutbox& out);
  void Receive(Now now, Sender from, const control::Accept& accept, MembershipOutbox& out);
  void Receive(Now now, Sender from, const control::Accepted& accepted, MembershipOutbox& out);
  void Receive(Now now, Sender from, const control::LayoutPush& push, MembershipOutbox& out);
  void Receive(Now now, Sender from, const control::LayoutWanted& wanted, MembershipOutbox& out);

  // Votes (membership_votes.cc).
  bool IsMyVote(Now now, Sender from, LayoutBase base, MembershipOutbox& out);
  bool IsSuccessor(const Layout& layout) const;
  bool MayAccept(const Layout& layout) const;
  bool IsBound(Now now) const;
  bool Abstains() const;
  void NoteWhatVotersKnow(NodeId from, uint64_t epoch, MembershipOutbox& out);
  void PersistVote(MembershipOutbox& out) const;

  // Steps, and who has left (membership_steps.cc).
  void Advance(Now now, MembershipOutbox& out);
  void Retired(Now now, MembershipOutbox& out);
  void LearnSteps(const std::vector<control::MemberStep>& steps);
  void PersistOther(MembershipOutbox& out) const;
  void PersistSteps(MembershipOutbox& out) const;
  void TellSteps(MembershipOutbox& out);
  bool HasLeft(NodeId node) const;
  void ForgetLeavers(Now now);
  void NoticeRemoval(MembershipOutbox& out);

  // What nobody asked for (membership_unasked.cc).
  void DoUnasked(Now now, MembershipOutbox& out);
  void TellOfUnasked(const absl::Status& status, MembershipOutbox& out);
  std::optional<LayoutChange::What> Unasked(Now now) const;
  std::optional<LayoutChange::What> Join(Now now) const;
  size_t RankAmongLiving() const;

  // Gossip (membership_gossip.cc).
  void Gossip(Now now, MembershipOutbox& out);
  void Watch(Now now);
  void TellSome(Now now, MembershipOutbox& out);
  void TellPromise(MembershipOutbox& out);
  void GreetSeeds(Now now, MembershipOutbox& out);
  control::Hello MakeHello(bool answer_wanted);

  // Proposing (membership_propose.cc).
  void Propose(Now now, MembershipOutbox& out);
  void AskVoters(Now now, MembershipOutbox& out);
  void Heed(Now now, Proposer::Verdict verdict, MembershipOutbox& out);
  void AnswerFirst(absl::Status status, MembershipOutbox& out);
  void JudgeOffer(MembershipOutbox& out);
  void Expire(Now now, MembershipOutbox& out);
  absl::Status StatusAtDeadline(const Pending& pending) const;
  uint64_t Random();

  Config config_;
  AddressBook book_;
  Formation formation_;
  FailureDetector detector_;
  std::pair<uint64_t, bool>
      watched_;  // whose members detector_ watches: epoch, and whether the one before, too
  NodeFactsValue facts_;
  LaneSteps lane_;
  Moves moves_;
  uint64_t handed_out_ = 0;                  // the stamp of the layouts that were last handed out
  AcceptorState acceptor_;                   // for the newest layout's successor
  std::optional<Micros> abort_promised_at_;  // an abort of the newest layout asked for this node's promise
  std::optional<Abstention> abstention_;     // since its store was lost
  std::set<NodeId> heard_voters_;            // that said in this life which layout they know
  bool left_in_order_ = false;  // in this life it was a member of the layout before one that it leaves with
  bool removal_said_ = false;

  std::deque<Pending> changes_;       // the first is being worked on
  std::optional<Proposer> proposer_;  // of the first change
  Micros retry_at_;                   // when proposer_ asks again, or gives way to the next attempt
  int refusals_ = 0;                  // in a row
  uint64_t round_ = 0;                // the highest ballot round used or seen
  uint64_t random_state_;

  std::deque<control::Body> to_self_;  // a node talks to itself as to others; handled before a method returns
  std::optional<Intent> intent_;
  Micros moves_at_;   // when to look at the lane's steps
  Micros wanted_at_;  // not before this a layout is asked for again
  Micros gossip_at_;
  Micros greet_at_;  // seeds
  std::string obstacle_said_;
  std::string unasked_said_;
  absl::flat_hash_map<NodeId, Micros> said_at_;  // about whom the log was told, in the last minute
};

}  // namespace gyre
