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
      random_state_(config_.random_seed ^ config_.self.id.value) {
  assert(config_.bootstrap_expect >= 1);
  *status = Load(persisted);
}

absl::Status Membership::Load(const std::map<std::string, std::string>& persisted) {
  const absl::Status statuses[] = {
      LoadOne(persisted, "layout", DecodeLayout,
              [&](Layout layout) {
                auto view = MakeView(std::move(layout));
                if (!view.ok()) return false;
                view_ = *std::move(view);
                acceptor_.base = {view_->layout.epoch, view_->digest};
                return true;
              }),
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
  };
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void Membership::Step(Now now, const control::Message& message, MembershipOutbox& out) {
  if (!Admit(now, message, out)) return;
  const Sender from{message.from, message.from_address};
  std::visit([&](const auto& body) { Receive(now, from, body, out); }, message.body);
  Settle(now, out);
}

void Membership::Change(Now now, LayoutChange change, MembershipOutbox& out) {
  if (!view_) {
    out.answers.push_back(
        {change.ticket, absl::UnavailableError("the cluster has not formed yet. " + obstacle()), nullptr});
  } else if (changes_.size() >= kChangesMax) {
    out.answers.push_back(
        {change.ticket,
         absl::ResourceExhaustedError(std::to_string(kChangesMax) +
                                      " changes wait at this node already; try again later"),
         nullptr});
  } else {
    changes_.push_back({std::move(change), std::nullopt});
    if (changes_.size() == 1) Propose(now, out);
    Settle(now, out);
  }
}

void Membership::Tick(Now now, MembershipOutbox& out) {
  Expire(now, out);
  if (now.steady >= gossip_at_) Gossip(now, out);
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
  const uint64_t ours = view_ ? view_->layout.cluster_id : formation_.cluster_id();
  if (message.cluster_id == 0 || ours == 0 || message.cluster_id == ours) return true;
  LogOncePerMinute(
      now, message.from,
      "Dropped a message of node " + ToString(message.from) + " at " + message.from_address +
          ": it belongs to cluster " + ClusterName(message.cluster_id) + ", this node " +
          (view_ ? "to " : "has promised to form ") + ClusterName(ours) +
          "; check the seeds of both, or remove the data directory of the one that is wrong here.",
      out);
  return false;
}

// Handles what this node said to itself, and what may have become possible.
void Membership::Settle(Now now, MembershipOutbox& out) {
  if (!view_) Form(now, out);
  while (!to_self_.empty()) {
    const control::Body body = std::move(to_self_.front());
    to_self_.pop_front();
    const Sender me{self(), book_.self().peer_address};
    std::visit([&](const auto& message) { Receive(now, me, message, out); }, body);
  }
}

void Membership::Form(Now now, MembershipOutbox& out) {
  if (formation_.TryPromise(book_.nodes())) {
    out.persists.push_back({Key("promise"), EncodePromise(*formation_.promise())});
    for (const NodeInfoValue& node : formation_.promise()->nodes) {
      if (node.id != self()) SendTo({node.id, node.peer_address}, *formation_.promise(), out);
    }
  }
  const std::optional<Layout> first = formation_.Formed();
  if (first && Install(now, {self(), book_.self().peer_address}, *first, out)) Announce(out);
}

void Membership::Receive(Now, Sender from, const control::FormationPromise& promise, MembershipOutbox&) {
  if (!view_) formation_.HeardPromise(from.id, promise);
}

void Membership::Receive(Now, Sender from, const control::LayoutWanted&, MembershipOutbox& out) {
  if (view_) SendTo(from, control::LayoutPush{view_->layout}, out);
}

void Membership::Receive(Now now, Sender from, const control::LayoutPush& push, MembershipOutbox& out) {
  if (push.layout.epoch > epoch()) Install(now, from, push.layout, out);
}

// Makes a chosen layout active, if it is one of this node's cluster and follows what this node has.
bool Membership::Install(Now now, Sender from, const Layout& layout, MembershipOutbox& out) {
  const uint64_t ours = view_ ? view_->layout.cluster_id : formation_.cluster_id();
  const bool same_cluster = ours == 0 || layout.cluster_id == ours;
  const bool same_line = !view_ || layout.epoch != epoch() + 1 || layout.base_digest == view_->digest;
  absl::Status status = CheckLayout(layout);
  if (!same_cluster) status = absl::InvalidArgumentError("it is of another cluster");
  if (!same_line)
    status = absl::InvalidArgumentError("it does not follow this node's layout; two were chosen");
  absl::StatusOr<std::shared_ptr<const View>> view = status.ok() ? MakeView(layout) : status;
  if (!view.ok()) {
    LogOncePerMinute(now, from.id,
                     "Refused the layout of epoch " + std::to_string(layout.epoch) + " of cluster " +
                         ClusterName(layout.cluster_id) + " from node " + ToString(from.id) + " at " +
                         from.address + ": " + std::string(view.status().message()) + ".",
                     out);
    return false;
  }
  view_ = *std::move(view);
  acceptor_ = {
      .base = {view_->layout.epoch, view_->digest}, .promised = {}, .accepted_ballot = {}, .accepted = {}};
  out.persists.push_back({Key("layout"), EncodeLayout(view_->layout)});
  out.new_view = view_;
  out.log.push_back("A layout of cluster " + ClusterName(layout.cluster_id) +
                    " is active: " + LayoutName(*view_) + ", " + std::to_string(layout.members.size()) +
                    " members, " + std::to_string(layout.keyspaces.size()) + " keyspaces" +
                    (Contains(layout, self()) ? "." : "; this node is not among the members."));
  JudgeOffer(out);
  Propose(now, out);
  return true;
}

void Membership::Announce(MembershipOutbox& out) {
  for (const auto& [id, info] : book_.nodes()) {
    if (id != self()) SendTo({id, info.peer_address}, control::LayoutPush{view_->layout}, out);
  }
}

// Whether this node has a vote about the successor of `base`. Helps out whoever is behind, this node
// included.
bool Membership::IsMyVote(Now now, Sender from, LayoutBase base, MembershipOutbox& out) {
  if (base.epoch > epoch()) {
    SendTo(from, control::LayoutWanted{}, out);
    return false;
  }
  if (base.epoch < epoch()) {
    SendTo(from, control::LayoutPush{view_->layout}, out);
    return false;
  }
  if (!view_) return false;
  if (base.digest != view_->digest) {
    LogOncePerMinute(now, from.id,
                     "Node " + ToString(from.id) + " wants to change another layout of epoch " +
                         std::to_string(epoch()) +
                         ": two were chosen, which must never happen. Stop one of the " +
                         "nodes and report this with the log of both.",
                     out);
    return false;
  }
  return std::ranges::binary_search(view_->layout.voters, self());
}

bool Membership::IsSuccessor(const Layout& layout) const {
  return layout.epoch == epoch() + 1 && layout.base_digest == view_->digest &&
         layout.cluster_id == view_->layout.cluster_id && CheckLayout(layout).ok() && MakeView(layout).ok();
}

void Membership::PersistVote(MembershipOutbox& out) const {
  out.persists.push_back({Key("acceptor"), EncodeAcceptor(acceptor_)});
}

void Membership::Receive(Now now, Sender from, const control::Prepare& prepare, MembershipOutbox& out) {
  if (!IsMyVote(now, from, {prepare.base_epoch, prepare.base_digest}, out)) return;
  const Ballot before = acceptor_.promised;
  control::Prepared answer = acceptor_.Step(prepare);
  if (acceptor_.promised != before) PersistVote(out);
  SendTo(from, std::move(answer), out);
}

void Membership::Receive(Now now, Sender from, const control::Accept& accept, MembershipOutbox& out) {
  if (!IsMyVote(now, from, {accept.base_epoch, accept.base_digest}, out) || !IsSuccessor(accept.layout))
    return;
  const Ballot before = acceptor_.accepted_ballot;
  const control::Accepted answer = acceptor_.Step(accept);
  if (acceptor_.accepted_ballot != before) PersistVote(out);
  SendTo(from, answer, out);
}

void Membership::SendTo(Sender to, control::Body body, MembershipOutbox& out) {
  if (to.id == self()) {
    to_self_.push_back(std::move(body));
    return;
  }
  out.sends.push_back({to.address,
                       {.cluster_id = view_ ? view_->layout.cluster_id : 0,
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
