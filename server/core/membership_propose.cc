// Membership: having an operator's change chosen by the voters.
#include <algorithm>
#include <utility>

#include "server/core/membership.h"
#include "server/core/membership_codec.h"
#include "storage/format/meta_codec.h"

namespace gyre {
namespace {

constexpr Micros kAskAgain = Millis(200);  // voters that have not answered
constexpr Micros kBackOff = Millis(20);  // the unit of jitter after a refusal; doubles with each one in a row
constexpr int kDoublingsMax = 5;

}  // namespace

// SplitMix64 (Steele, Lea, Flood, 2014): jitter needs no more.
uint64_t Membership::Random() {
  uint64_t z = random_state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Begins an attempt for the first change that can be made on the layout of now; answers those that cannot.
void Membership::Propose(Now now, MembershipOutbox& out) {
  proposer_.reset();
  while (!changes_.empty() && !proposer_) {
    const ChangeBase base = {.newest = *view(),
                             .other = moves_.other().get(),
                             .progress = moves_.moving() ? moves_.Progress() : ""};
    absl::StatusOr<Layout> wanted = Apply(base, changes_.front().change.what);
    if (!wanted.ok()) {
      AnswerFirst(wanted.status(), out);
      continue;
    }
    // Durable before it is used, so that no later life uses this ballot for another layout.
    out.persists.push_back({std::string(kMetaMembership) + "round", EncodeRound(++round_)});
    proposer_.emplace(Proposer::Plan{.base = {view()->layout.epoch, view()->digest},
                                     .voters = view()->layout.voters,
                                     .ballot = {round_, self()},
                                     .wanted = *std::move(wanted)});
    AskVoters(now, out);
  }
}

void Membership::AskVoters(Now now, MembershipOutbox& out) {
  retry_at_ = now.steady + kAskAgain;
  for (const NodeId voter : proposer_->Unanswered()) {
    const std::string* const address = book_.PeerAddressOf(voter);
    if (address != nullptr) SendTo({voter, *address}, proposer_->Request(), out);
  }
}

void Membership::Receive(Now now, Sender from, const control::Prepared& prepared, MembershipOutbox& out) {
  const bool consistent = prepared.accepted.has_value() == (prepared.accepted_ballot.round > 0);
  if (!proposer_ || !consistent || (prepared.accepted && !IsSuccessor(*prepared.accepted))) return;
  if (!prepared.accepted || !prepared.accepted->abort || moves_.moving()) {
    return Heed(now, proposer_->Step(from.id, prepared), out);
  }
  // The movement is over: the abort that a minority accepted was not chosen and never is, so that it need not
  // be carried on. (What is above it in another voter's answer still is.)
  control::Prepared without = prepared;
  without.accepted.reset();
  without.accepted_ballot = {};
  Heed(now, proposer_->Step(from.id, without), out);
}

void Membership::Receive(Now now, Sender from, const control::Accepted& accepted, MembershipOutbox& out) {
  if (proposer_) Heed(now, proposer_->Step(from.id, accepted), out);
}

void Membership::Heed(Now now, Proposer::Verdict verdict, MembershipOutbox& out) {
  switch (verdict) {
    case Proposer::Verdict::kPending:
      return;
    case Proposer::Verdict::kAccept:
      if (proposer_->offers_wanted()) {
        changes_.front().offer = {proposer_->value().epoch, DigestOf(proposer_->value())};
      }
      AskVoters(now, out);
      return;
    case Proposer::Verdict::kRefused: {
      round_ = std::max(round_, proposer_->highest().round);
      const uint64_t units = uint64_t{2} << std::min(refusals_++, kDoublingsMax);
      const auto unit = static_cast<uint64_t>(kBackOff.value);
      retry_at_ = now.steady + kBackOff + Micros{static_cast<int64_t>(Random() % (units * unit))};
      return;
    }
    case Proposer::Verdict::kChosen: {
      const Layout chosen = proposer_->value();  // Install moves on to the next attempt
      control::LayoutPush push = {.layout = chosen};
      if (chosen.moves()) push.other = view()->layout;
      if (Install(now, {self(), book_.self().peer_address}, push, out)) Announce(out);
      return;
    }
  }
}

void Membership::AnswerFirst(absl::Status status, MembershipOutbox& out) {
  if (changes_.front().unasked) {
    TellOfUnasked(status, out);
  } else {
    out.answers.push_back({changes_.front().change.ticket, status, status.ok() ? view() : nullptr});
  }
  changes_.pop_front();
  refusals_ = 0;
}

// A newer layout is active: is what was offered in it? One that was not chosen for its epoch never will be.
void Membership::JudgeOffer(MembershipOutbox& out) {
  refusals_ = 0;
  if (changes_.empty() || !changes_.front().offer) return;
  const Pending::Offer offer = *std::exchange(changes_.front().offer, std::nullopt);
  if (epoch() == offer.epoch || epoch() == offer.epoch + 1) {
    const uint64_t chosen = epoch() == offer.epoch ? view()->digest : view()->layout.base_digest;
    if (chosen == offer.digest) AnswerFirst(absl::OkStatus(), out);
  } else if (Shows(*view(), changes_.front().change.what)) {
    AnswerFirst(absl::OkStatus(), out);
  } else {
    AnswerFirst(
        absl::UnknownError("outcome unknown: this node missed " + std::to_string(epoch() - offer.epoch) +
                           " layouts, and the change may have been made and undone in them; read the state "
                           "and decide"),
        out);
  }
}

absl::Status Membership::StatusAtDeadline(const Pending& pending) const {
  if (pending.offer) {
    return absl::UnknownError(
        "outcome unknown: some voters may have accepted the change, and it may yet take effect; read the "
        "state again");
  }
  if (&pending != &changes_.front() || !proposer_) {
    return absl::UnavailableError(
        "other changes were made first, and there was no time left; nothing was changed");
  }
  const std::string of_voters =
      std::to_string(proposer_->answered()) + " of " + std::to_string(proposer_->voters());
  if (proposer_->refused() || proposer_->answered() >= proposer_->majority()) {
    return absl::UnavailableError(of_voters +
                                  " voters answered, but another node is changing the layout at the same " +
                                  "time; nothing was changed; try again");
  }
  return absl::UnavailableError(of_voters + " voters answered; a majority of " +
                                std::to_string(proposer_->majority()) + " is needed; nothing was changed");
}

// Gives up on changes whose time is over.
void Membership::Expire(Now now, MembershipOutbox& out) {
  if (changes_.empty()) return;
  const auto expired = [&](const Pending& pending) { return pending.change.deadline <= now.steady; };
  const bool first_expired = expired(changes_.front());
  for (const Pending& pending : changes_) {
    if (!expired(pending)) continue;
    if (pending.unasked) {
      TellOfUnasked(StatusAtDeadline(pending), out);
    } else {
      out.answers.push_back({pending.change.ticket, StatusAtDeadline(pending), nullptr});
    }
  }
  std::erase_if(changes_, expired);
  if (!first_expired) return;
  refusals_ = 0;
  Propose(now, out);
}

}  // namespace gyre
