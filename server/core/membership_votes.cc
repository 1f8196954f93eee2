// Membership: this node's votes about the next layout, and what they bind it to.
//
// Why an abort and the retirement of what it goes back to exclude each other: a voter helps to abort only
// before it commits itself to the newest layout (Moves::committed), and does not commit itself after; and
// of the same voters an abort needs a majority, the retirement so many that the others are none. Once those
// are known to be committed an abort can not be chosen any more, and whoever helped it is free again.
#include <algorithm>
#include <utility>

#include "server/core/layout_line.h"
#include "server/core/membership.h"
#include "server/core/membership_codec.h"
#include "storage/format/meta_codec.h"

namespace gyre {
namespace {

// A node that promised to vote about an abort waits so long for the vote itself before it commits itself to
// the newest layout. Without that a voter that is asked first could be bound by its vote while the others go
// on, and neither side have its majority while some voter is away.
constexpr Micros kAbortPromise = Seconds(2);

}  // namespace

// Whether this node has a vote about the successor of `base`. Helps out whoever is behind, this node
// included.
bool Membership::IsMyVote(Now now, Sender from, LayoutBase base, MembershipOutbox& out) {
  if (base.epoch > epoch()) {
    SendTo(from, control::LayoutWanted{}, out);
    return false;
  }
  if (base.epoch < epoch()) {
    SendTo(from, MakePush(), out);
    return false;
  }
  if (!view()) return false;
  if (base.digest != view()->digest) {
    LogOncePerMinute(now, from.id,
                     "Node " + ToString(from.id) + " wants to change another layout of epoch " +
                         std::to_string(epoch()) +
                         ": two were chosen, which must never happen. Stop one of the " +
                         "nodes and report this with the log of both.",
                     out);
    return false;
  }
  if (!std::ranges::binary_search(view()->layout.voters, self())) return false;
  if (!Abstains()) return true;
  LogOncePerMinute(now, self(),
                   "This node has lost its store and may have voted before about what follows the layout of "
                   "epoch " +
                       std::to_string(epoch()) + ": it votes again from the next one on.",
                   out);
  return false;
}

bool Membership::IsSuccessor(const Layout& layout) const {
  return CheckSuccessor(view()->layout, layout).ok() && MakeView(layout).ok();
}

// While data moves to the newest layout the only successor is an abort; afterwards it can be none.
bool Membership::MayAccept(const Layout& layout) const {
  if (!IsSuccessor(layout)) return false;
  if (!moves_.moving()) return !layout.abort;
  return !moves_.committed() && IsAbortOf(view()->layout, moves_.other()->layout, layout);
}

// Whether this node may not commit itself to the newest layout (now).
bool Membership::IsBound(Now now) const {
  if (!moves_.moving() || moves_.AbortIsImpossible()) return false;
  if (!std::ranges::binary_search(view()->layout.voters, self())) return false;
  const bool helped_to_abort = acceptor_.accepted && acceptor_.accepted->abort;
  const bool asked = abort_promised_at_ && now.steady - *abort_promised_at_ < kAbortPromise;
  return helped_to_abort || asked || Abstains();
}

// A node that lost its store, or a part of it, has forgotten its votes. Whatever was chosen by one of them
// was also voted for by another of the voters, who therefore knows that layout's base: so it votes again
// about what follows a layout that none of enough other voters knew yet.
bool Membership::Abstains() const {
  return abstention_ && (!abstention_->known || epoch() <= abstention_->through);
}

void Membership::NoteWhatVotersKnow(NodeId from, uint64_t epoch_there, MembershipOutbox& out) {
  if (!abstention_ || abstention_->known || !view()) return;
  const std::vector<NodeId>& voters = view()->layout.voters;
  if (!std::ranges::binary_search(voters, from)) return;
  if (from != self()) heard_voters_.insert(from);
  // Where nobody else votes there is nothing to contradict.
  if (voters.size() > 1) abstention_->through = std::max({abstention_->through, epoch_there, epoch()});
  // With this node they are as many as no majority with this node can do without.
  const size_t enough = std::min((voters.size() + 1) / 2, voters.size() - 1);
  abstention_->known = heard_voters_.size() >= enough;
  if (!abstention_->known) return;
  out.persists.push_back({std::string(kMetaMembership) + "abstains", EncodeAbstention(*abstention_)});
}

void Membership::PersistVote(MembershipOutbox& out) const {
  out.persists.push_back({std::string(kMetaMembership) + "acceptor", EncodeAcceptor(acceptor_)});
}

void Membership::Receive(Now now, Sender from, const control::Prepare& prepare, MembershipOutbox& out) {
  if (!IsMyVote(now, from, {prepare.base_epoch, prepare.base_digest}, out)) return;
  // While data moves it is about an abort. Or the sender knows that it moves no more: then it asks again.
  if (moves_.moving() && moves_.committed()) return SendTo(from, control::LayoutWanted{}, out);
  const Ballot before = acceptor_.promised;
  control::Prepared answer = acceptor_.Step(prepare);
  if (acceptor_.promised != before) PersistVote(out);
  round_ = std::max(round_, acceptor_.promised.round);
  if (moves_.moving() && answer.promised) abort_promised_at_ = now.steady;
  SendTo(from, std::move(answer), out);
}

void Membership::Receive(Now now, Sender from, const control::Accept& accept, MembershipOutbox& out) {
  if (!IsMyVote(now, from, {accept.base_epoch, accept.base_digest}, out)) return;
  if (!MayAccept(accept.layout)) {
    if (moves_.moving()) SendTo(from, control::LayoutWanted{}, out);  // it may know that it is over
    return;
  }
  const Ballot before = acceptor_.accepted_ballot;
  const control::Accepted answer = acceptor_.Step(accept);
  if (acceptor_.accepted_ballot != before) PersistVote(out);
  round_ = std::max(round_, acceptor_.promised.round);
  SendTo(from, answer, out);
}

}  // namespace gyre
