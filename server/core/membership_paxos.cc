// Acceptor and proposer.
#include "server/core/membership_paxos.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace gyre {

control::Prepared AcceptorState::Step(const control::Prepare& prepare) {
  assert((LayoutBase{prepare.base_epoch, prepare.base_digest} == base));
  control::Prepared answer;
  answer.base_epoch = base.epoch;
  answer.base_digest = base.digest;
  answer.ballot = prepare.ballot;
  answer.promised = prepare.ballot >= promised;
  if (answer.promised) {
    promised = prepare.ballot;
    answer.accepted_ballot = accepted_ballot;
    answer.accepted = accepted;
  }
  answer.highest = promised;
  return answer;
}

control::Accepted AcceptorState::Step(const control::Accept& accept) {
  assert((LayoutBase{accept.base_epoch, accept.base_digest} == base));
  control::Accepted answer;
  answer.base_epoch = base.epoch;
  answer.base_digest = base.digest;
  answer.ballot = accept.ballot;
  answer.accepted = accept.ballot >= promised;
  if (answer.accepted) {
    promised = accept.ballot;
    accepted_ballot = accept.ballot;
    accepted = accept.layout;
  }
  answer.highest = promised;
  return answer;
}

template <typename Answer>
bool Proposer::IsNews(NodeId from, const Answer& answer) const {
  return !refused_ && answer.ballot == plan_.ballot &&
         LayoutBase{answer.base_epoch, answer.base_digest} == plan_.base &&
         std::ranges::binary_search(plan_.voters, from) && !answers_.contains(from);
}

Proposer::Verdict Proposer::Refuse(NodeId from, Ballot highest) {
  answers_[from] = false;
  highest_ = std::max(highest_, highest);
  refused_ = true;
  return Verdict::kRefused;
}

size_t Proposer::Yeses() const {
  return static_cast<size_t>(std::ranges::count(answers_, true, &std::pair<const NodeId, bool>::second));
}

Proposer::Verdict Proposer::Step(NodeId from, const control::Prepared& answer) {
  if (value_ || !IsNews(from, answer)) return Verdict::kPending;
  if (!answer.promised) return Refuse(from, answer.highest);
  answers_[from] = true;
  if (answer.accepted && answer.accepted_ballot > accepted_ballot_) {
    accepted_ballot_ = answer.accepted_ballot;
    accepted_ = answer.accepted;
  }
  if (Yeses() < majority()) return Verdict::kPending;
  value_ = accepted_ ? *std::exchange(accepted_, std::nullopt) : plan_.wanted;
  answers_.clear();
  return Verdict::kAccept;
}

Proposer::Verdict Proposer::Step(NodeId from, const control::Accepted& answer) {
  if (!value_ || !IsNews(from, answer)) return Verdict::kPending;
  if (!answer.accepted) return Refuse(from, answer.highest);
  answers_[from] = true;
  return Yeses() == majority() ? Verdict::kChosen : Verdict::kPending;
}

control::Body Proposer::Request() const {
  if (value_) return control::Accept{plan_.base.epoch, plan_.base.digest, plan_.ballot, *value_};
  return control::Prepare{plan_.base.epoch, plan_.base.digest, plan_.ballot};
}

std::vector<NodeId> Proposer::Unanswered() const {
  std::vector<NodeId> left;
  for (const NodeId voter : plan_.voters) {
    if (!answers_.contains(voter)) left.push_back(voter);
  }
  return left;
}

}  // namespace gyre
