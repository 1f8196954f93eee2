// Membership: what is admitted, what each message does, and layouts becoming active.
#include "server/core/membership.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "server/core/membership_codec.h"
#include "storage/format/meta_codec.h"

namespace gyre {
namespace {

constexpr Micros kMinute = Seconds(60);
constexpr Micros kLookAtMoves = Millis(50);
constexpr size_t kSaidMax = 1024;  // senders that the log may be told about in one minute

std::string Key(std::string_view name) { return std::string(kMetaMembership).append(name); }

std::string ClusterName(uint64_t id) { return ToString(Token{id}); }

std::string LayoutName(const View& view) {
  return "epoch " + std::to_string(view.layout.epoch) + ", digest " + ToString(Token{view.digest});
}

bool Contains(const Layout& layout, NodeId node) {
  return std::ranges::binary_search(layout.members, node, {}, &Member::id);
}

// Decodes what is stored under `name`, if anything is, and gives it to `take`, which says whether it makes
// sense.
template <typename Decode, typename Take>
absl::Status LoadOne(const std::map<std::string, std::string>& persisted, std::string_view name,
                     Decode decode, Take take) {
  const auto found = persisted.find(Key(name));
  if (found == persisted.end()) return absl::OkStatus();
  auto value = decode(found->second);
  if (!value.ok()) return value.status();
  if (take(*std::move(value))) return absl::OkStatus();
  return absl::DataLossError("what is stored as '" + Key(name) +
                             "' contradicts the rest of the store; restore it");
}

}  // namespace

Membership::Membership(Config config, const std::map<std::string, std::string>& persisted,
                       absl::Status* status)
    : config_(std::move(config)),
      book_(config_.self),
      formation_(config_.self.id, config_.bootstrap_expect),
      detector_(config_.self.id, config_.random_seed),
      moves_(config_.self.id),
      random_state_(config_.random_seed ^ config_.self.id.value) {
  assert(config_.bootstrap_expect >= 1);
  *status = Load(persisted);
}

absl::Status Membership::LoadLayouts(const std::map<std::string, std::string>& persisted) {
  std::shared_ptr<const View> view;
  std::shared_ptr<const View> other;
  std::optional<StoredSteps> steps;
  const auto make = [](Layout layout, std::shared_ptr<const View>& made) {
    auto result = MakeView(std::move(layout));
    if (result.ok()) made = *std::move(result);
    return result.ok();
  };
  absl::Status status = LoadOne(persisted, "layout", DecodeLayout,
                                [&](Layout layout) { return make(std::move(layout), view); });
  if (!status.ok() || view == nullptr) return status;
  const uint64_t epoch = view->layout.epoch;
  // What belongs to an older layout is settled. That of one which moves data must be there: without it an
  // unfinished movement would look like one that is over.
  bool complete = !view->layout.moves();
  status = LoadOne(persisted, "other", DecodeOther, [&](StoredOther stored) {
    if (stored.epoch != epoch) return stored.epoch < epoch;
    complete = true;
    if (!stored.other) return true;
    return view->layout.moves() && make(*std::move(stored.other), other) &&
           other->digest == view->layout.base_digest;
  });
  if (!status.ok()) return status;
  status = LoadOne(persisted, "steps", DecodeSteps, [&](StoredSteps stored) {
    if (stored.epoch == epoch) steps = std::move(stored);
    return stored.epoch <= epoch;
  });
  if (!status.ok()) return status;
  if (!complete || (view->layout.moves() && !steps)) {
    return absl::DataLossError("what is stored about the movement to the layout of epoch " +
                               std::to_string(epoch) + " is missing; restore the store");
  }
  moves_.Begin(std::move(view), std::move(other));
  if (steps) moves_.Remember(steps->steps);
  handed_out_ = moves_.layouts().stamp;
  acceptor_.base = {epoch, moves_.view()->digest};
  return absl::OkStatus();
}

absl::Status Membership::Load(const std::map<std::string, std::string>& persisted) {
  if (absl::Status status = LoadLayouts(persisted); !status.ok()) return status;
  const absl::Status statuses[] = {
      // A vote about an older base is settled. One about a newer base would mean that its layout was lost.
      LoadOne(persisted, "acceptor", DecodeAcceptor,
              [&](AcceptorState state) {
                const bool current = state.base == acceptor_.base;
                if (current) acceptor_ = std::move(state);
                return current || state.base.epoch < epoch();
              }),
      LoadOne(persisted, "promise", DecodePromise,
              [&](control::FormationPromise promise) { return formation_.Remember(std::move(promise)); }),
      LoadOne(persisted, "known", DecodeNodes,
              [&](const std::vector<NodeInfoValue>& nodes) {
                book_.Remember(nodes);
                return true;
              }),
      LoadOne(persisted, "round", DecodeRound,
              [&](uint64_t round) {
                round_ = round;
                return true;
              }),
      LoadOne(persisted, "abstains", DecodeAbstention,
              [&](Abstention abstention) {
                abstention_ = abstention;
                return true;
              }),
  };
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::pair<std::string, std::string> Membership::VotesForgotten() {
  return {Key("abstains"), EncodeAbstention({})};
}

void Membership::Step(Now now, const control::Message& message, MembershipOutbox& out) {
  if (!Admit(now, message, out)) return;
  const Sender from{message.from, message.from_address};
  std::visit([&](const auto& body) { Receive(now, from, body, out); }, message.body);
  Settle(now, out);
}

void Membership::Change(Now now, LayoutChange change, MembershipOutbox& out) {
  if (!view()) {
    out.answers.push_back(
        {change.ticket, absl::UnavailableError("the cluster has not formed yet. " + obstacle()), nullptr});
  } else if (changes_.size() >= kChangesMax) {
    out.answers.push_back(
        {change.ticket,
         absl::ResourceExhaustedError(std::to_string(kChangesMax) +
                                      " changes wait at this node already; try again later"),
         nullptr});
  } else {
    changes_.push_back({.change = std::move(change)});
    if (changes_.size() == 1) Propose(now, out);
    Settle(now, out);
  }
}

void Membership::Tick(Now now, MembershipOutbox& out) {
  Expire(now, out);
  moves_at_ = now.steady + kLookAtMoves;
  if (now.steady >= gossip_at_) {
    Gossip(now, out);
    DoUnasked(now, out);
  }
  if (proposer_ && now.steady >= retry_at_) {
    if (proposer_->refused()) {
      Propose(now, out);
    } else {
      AskVoters(now, out);
    }
  }
  Settle(now, out);
}

Micros Membership::next_deadline() const {
  Micros next = gossip_at_;
  if (proposer_) next = std::min(next, retry_at_);
  if (moves_.moving()) next = std::min(next, moves_at_);
  for (const Pending& pending : changes_) next = std::min(next, pending.change.deadline);
  return next;
}

// Whether a message may be taken in at all.
bool Membership::Admit(Now now, const control::Message& message, MembershipOutbox& out) {
  const NodeInfoValue& me = book_.self();
  if (!message.from || message.from_address.empty()) return false;
  if (message.from == me.id) {
    // From our own address it is what we sent to a seed that is this node under another name.
    if (message.from_address != me.peer_address) {
      LogOncePerMinute(now, message.from,
                       "Dropped a message from " + message.from_address +
                           ", whose sender says that it is this node (" + ToString(me.id) +
                           "): if it goes on, two processes have the same data; stop one of them.",
                       out);
    }
    return false;
  }
  const uint64_t ours = view() ? view()->layout.cluster_id : formation_.cluster_id();
  if (message.cluster_id == 0 || ours == 0 || message.cluster_id == ours) return true;
  LogOncePerMinute(
      now, message.from,
      "Dropped a message of node " + ToString(message.from) + " at " + message.from_address +
          ": it belongs to cluster " + ClusterName(message.cluster_id) + ", this node " +
          (view() ? "to " : "has promised to form ") + ClusterName(ours) +
          "; check the seeds of both, or remove the data directory of the one that is wrong here.",
      out);
  return false;
}

// Handles what this node said to itself, and what may have become possible.
void Membership::Settle(Now now, MembershipOutbox& out) {
  if (!view()) Form(now, out);
  do {
    while (!to_self_.empty()) {
      const control::Body body = std::move(to_self_.front());
      to_self_.pop_front();
      const Sender me{self(), book_.self().peer_address};
      std::visit([&](const auto& message) { Receive(now, me, message, out); }, body);
    }
    Advance(now, out);
  } while (!to_self_.empty());
  if (layouts().stamp != handed_out_) {
    handed_out_ = layouts().stamp;
    out.new_layouts = layouts();
  }
  NoticeRemoval(out);
}

void Membership::Form(Now now, MembershipOutbox& out) {
  if (formation_.TryPromise(book_.nodes())) {
    out.persists.push_back({Key("promise"), EncodePromise(*formation_.promise())});
    for (const NodeInfoValue& node : formation_.promise()->nodes) {
      if (node.id != self()) SendTo({node.id, node.peer_address}, *formation_.promise(), out);
    }
  }
  const std::optional<Layout> first = formation_.Formed();
  if (!first) return;
  // If its store was lost, so were those of all others: nothing is left that it could contradict.
  if (abstention_) abstention_ = Abstention{.known = true};
  if (Install(now, {self(), book_.self().peer_address}, {.layout = *first}, out)) Announce(out);
}

void Membership::Receive(Now, Sender from, const control::FormationPromise& promise, MembershipOutbox&) {
  if (!view()) formation_.HeardPromise(from.id, promise);
}

void Membership::Receive(Now, Sender from, const control::LayoutWanted&, MembershipOutbox& out) {
  if (view()) SendTo(from, MakePush(), out);
}

void Membership::Receive(Now now, Sender from, const control::LayoutPush& push, MembershipOutbox& out) {
  if (push.layout.epoch > epoch()) {
    Install(now, from, push, out);
  } else if (view() && push.layout.epoch == epoch() && DigestOf(push.layout) == view()->digest) {
    LearnSteps(push.steps);
    if (!push.other && moves_.moving()) {
      moves_.Retire();  // the sender knows enough steps to say so
      Retired(now, out);
    }
  }
}

// The view of the layout that is active beside a pushed one; nullptr without one.
absl::StatusOr<std::shared_ptr<const View>> Membership::CheckOther(const control::LayoutPush& push) const {
  if (!push.other) return nullptr;
  if (!push.layout.moves() || push.other->epoch + 1 != push.layout.epoch ||
      DigestOf(*push.other) != push.layout.base_digest) {
    return absl::InvalidArgumentError("it came with a layout that is not its base");
  }
  if (view() && view()->digest == push.layout.base_digest) return view();
  if (absl::Status status = CheckLayout(*push.other); !status.ok()) return status;
  return MakeView(*push.other);
}

// Makes a chosen layout active, if it is one of this node's cluster and follows what this node has.
bool Membership::Install(Now now, Sender from, const control::LayoutPush& push, MembershipOutbox& out) {
  const Layout& layout = push.layout;
  const uint64_t ours = view() ? view()->layout.cluster_id : formation_.cluster_id();
  const bool same_cluster = ours == 0 || layout.cluster_id == ours;
  const bool same_line = !view() || layout.epoch != epoch() + 1 || layout.base_digest == view()->digest;
  absl::Status status = CheckLayout(layout);
  if (!same_cluster) status = absl::InvalidArgumentError("it is of another cluster");
  if (!same_line)
    status = absl::InvalidArgumentError("it does not follow this node's layout; two were chosen");
  absl::StatusOr<std::shared_ptr<const View>> view = status.ok() ? MakeView(layout) : status;
  absl::StatusOr<std::shared_ptr<const View>> other = view.ok() ? CheckOther(push) : view.status();
  if (!other.ok()) {
    LogOncePerMinute(now, from.id,
                     "Refused the layout of epoch " + std::to_string(layout.epoch) + " of cluster " +
                         ClusterName(layout.cluster_id) + " from node " + ToString(from.id) + " at " +
                         from.address + ": " + std::string(other.status().message()) + ".",
                     out);
    return false;
  }
  // Where nothing moves there is no layout before in which it could take part while it leaves.
  const bool follows = this->view() && layout.base_digest == this->view()->digest && !layout.moves();
  if (follows && Contains(this->view()->layout, self())) left_in_order_ = true;
  moves_.Begin(*std::move(view), *std::move(other));
  LearnSteps(push.steps);
  acceptor_ = {
      .base = {layout.epoch, this->view()->digest}, .promised = {}, .accepted_ballot = {}, .accepted = {}};
  abort_promised_at_.reset();
  if (layout.moves()) {
    PersistOther(out);
    PersistSteps(out);
  }
  NoteWhatVotersKnow(self(), epoch(), out);
  if (abstention_) out.persists.push_back({Key("abstains"), EncodeAbstention(*abstention_)});
  out.persists.push_back({Key("layout"), EncodeLayout(layout)});
  out.log.push_back(
      "A layout of cluster " + ClusterName(layout.cluster_id) + " is active: " + LayoutName(*this->view()) +
      ", " + std::to_string(layout.members.size()) + " members, " + std::to_string(layout.keyspaces.size()) +
      " keyspaces" + (Contains(layout, self()) ? "." : "; this node is not among the members.") +
      (moves_.moving()
           ? " Data moves to it from that of epoch " + std::to_string(moves_.other()->layout.epoch) + "."
           : ""));
  JudgeOffer(out);
  Propose(now, out);
  return true;
}

control::LayoutPush Membership::MakePush() const {
  control::LayoutPush push = {.layout = view()->layout};
  if (moves_.moving()) push.other = moves_.other()->layout;
  if (view()->layout.moves()) push.steps = moves_.steps();
  return push;
}

void Membership::Announce(MembershipOutbox& out) {
  const control::LayoutPush push = MakePush();
  for (const auto& [id, info] : book_.nodes()) {
    if (id != self()) SendTo({id, info.peer_address}, push, out);
  }
}

void Membership::SendTo(Sender to, control::Body body, MembershipOutbox& out) {
  if (to.id == self()) {
    to_self_.push_back(std::move(body));
    return;
  }
  out.sends.push_back({to.address,
                       {.cluster_id = view() ? view()->layout.cluster_id : 0,
                        .from = self(),
                        .from_address = book_.self().peer_address,
                        .body = std::move(body)}});
}

void Membership::LogOncePerMinute(Now now, NodeId sender, std::string sentence, MembershipOutbox& out) {
  if (said_at_.size() >= kSaidMax) {
    absl::erase_if(said_at_, [&](const auto& said) { return now.steady - said.second >= kMinute; });
    if (said_at_.size() >= kSaidMax) return;
  }
  const auto [said, first] = said_at_.try_emplace(sender, now.steady);
  if (!first && now.steady - said->second < kMinute) return;
  said->second = now.steady;
  out.log.push_back(std::move(sentence));
}

}  // namespace gyre
