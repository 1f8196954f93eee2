// Hinted handoff.
#include "server/core/handoff.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/core/replica_set.h"
#include "storage/format/row_key.h"

namespace gyre {
namespace {

std::string FirstHintKey(NodeId node) { return RowKeyFloor(kHintsKeyspace, node.value); }

}  // namespace

void Handoff::Tick(const Turn& turn) {
  AnswerWaiting(turn);
  std::erase_if(sent_, [&](const auto& each) {
    if (turn.now.steady < each.second.patience) return false;
    Pass& pass = passes_[each.second.target];
    if (pass.under_way > 0) --pass.under_way;
    return true;
  });
  if (page_op_ != 0) return;
  if (!counted_) {
    if (turn.now.steady >= count_at_)
      ReadPage(turn, NodeId{}, counted_to_.empty() ? FirstHintKey({}) : counted_to_);
    return;
  }
  if (turn.view() == nullptr) return;
  for (const auto& [node, count] : replica_.hints()) {
    if (!turn.layouts.HasMember(node)) passes_[node].up = true;  // it left: others are given what was for it
  }
  for (auto& [node, pass] : passes_) {
    if (!IsDue(node, pass) || turn.now.steady < pass.next) continue;
    return ReadPage(turn, node, pass.after.empty() ? FirstHintKey(node) : pass.after);
  }
}

bool Handoff::IsDue(NodeId node, const Pass& pass) const {
  return pass.up && pass.under_way == 0 && replica_.hints().contains(node);
}

std::optional<Micros> Handoff::next_deadline() const {
  if (page_op_ != 0) return std::nullopt;
  if (!counted_) return count_at_;
  std::optional<Micros> next;
  const auto at = [&](Micros when) { next = next ? std::min(*next, when) : when; };
  for (const Waiting& waiting : waiting_) at(waiting.deadline);
  for (const auto& [op, delivery] : sent_) {
    at(delivery.patience);
    break;  // of those under way about the earliest
  }
  for (const auto& [node, pass] : passes_) {
    if (IsDue(node, pass)) at(pass.next);
  }
  return next;
}

void Handoff::ReadPage(const Turn& turn, NodeId target, const std::string& after) {
  page_op_ = next_op_++;
  page_of_ = target;
  const std::string end = target ? RowKeyCeiling(kHintsKeyspace, target.value) : std::string(16, '\xff');
  turn.out.page_reads.push_back(
      {.asked_by = turn.self,
       .op = page_op_,
       .use = PageRequest::Use::kHandoff,
       .page = {after, end, target ? kPageRows : ScanCall::kRowsMax, peer::FetchPage::kBytesMax,
                /*skip_damage=*/true}});
}

void Handoff::PageRead(const Turn& turn, OpId op, const peer::FetchPageReply& page) {
  if (op != page_op_) return;
  page_op_ = 0;
  if (!page_of_) return CountPage(turn, page);
  Pass& pass = passes_[page_of_];
  if (page.code != absl::StatusCode::kOk) {
    pass.next = turn.now.steady + kPassesApart;
    return;
  }
  std::vector<OpId> begun;
  for (const Row& row : page.rows) {
    uint64_t node = 0;
    std::string_view row_key;
    if (!ParseHintKey(row.row_key, node, row_key)) continue;
    const OpId delivery = next_op_++;
    sent_[delivery] = {
        .target = page_of_, .row_key = std::string(row_key), .patience = turn.now.steady + kPatience};
    begun.push_back(delivery);
    ++pass.under_way;
  }
  pass.found = pass.found || !page.rows.empty() || page.skipped;
  pass.next = turn.now.steady + kPagesApart;
  if (page.complete) {
    if (!std::exchange(pass.found, false)) replica_.ForgetHintCount(page_of_);
    pass.after.clear();
    if (page.rows.empty()) pass.next = turn.now.steady + (page.skipped ? kDamagedPassesApart : kPassesApart);
  } else {
    pass.after = page.rows.back().row_key;
  }
  for (const OpId each : begun) Resume(turn, each);
}

void Handoff::CountPage(const Turn& turn, const peer::FetchPageReply& page) {
  if (page.code != absl::StatusCode::kOk) {
    count_at_ = turn.now.steady + kPassesApart;
    return;
  }
  for (const Row& row : page.rows) replica_.CountHint(row.row_key, row.record);
  damaged_ = damaged_ || page.skipped;
  counted_ = page.complete;
  if (!page.complete) counted_to_ = page.rows.back().row_key;
}

void Handoff::Resume(const Turn& turn, OpId op) {
  const auto found = sent_.find(op);
  if (found == sent_.end()) return;  // the target went away meanwhile
  Delivery& delivery = found->second;
  const std::string hint_key = MakeHintKey(delivery.target.value, delivery.row_key);
  RowTable& rows = replica_.rows();
  RowTable::Entry* const hint = rows.Find(hint_key);
  if (hint == nullptr) return rows.Park(hint_key, ResumeHint{op}, turn.out);
  const RowTable::Entry* const own = rows.Find(delivery.row_key);
  if (own == nullptr) return rows.Park(delivery.row_key, ResumeHint{op}, turn.out);
  if (hint->latest == nullptr) return End(op);
  if (!delivery.sent) return Send(turn, op, delivery, *own, *hint);
  if (!delivery.confirmed) return;
  if (SameRecord(hint->latest, delivery.hint) && SameRecord(own->latest, delivery.own)) {
    Erase(turn, delivery, *hint);
  }
  End(op);
}

void Handoff::Send(const Turn& turn, OpId op, Delivery& delivery, const RowTable::Entry& own,
                   const RowTable::Entry& hint) {
  RowKeyParts parts;
  ParseRowKey(delivery.row_key, parts);
  const KeyspaceSpec* const keyspace = turn.view()->Keyspace(parts.keyspace);
  // Who has no row is no replica, and covers nothing.
  const CutRecord held = own.latest ? replica_.AtCut(delivery.row_key, own.latest) : CutRecord{};
  const CutRecord data = {IsEmptyRecord(hint.latest) ? nullptr : hint.latest};
  const absl::StatusOr<CutRecord> record =
      MergeAtCuts(held, data, keyspace ? keyspace->conflict : ConflictRule::kSiblings);
  delivery.own = own.latest;
  delivery.hint = hint.latest;
  delivery.sent = true;
  // Nothing is owed of a row that is not there, or of a keyspace that is gone.
  const NodeId heir = keyspace == nullptr ? NodeId{} : HeirOf(turn, *keyspace, delivery);
  const bool owed_to_nobody = heir != delivery.target && data.record == nullptr;
  if (keyspace == nullptr || owed_to_nobody || (record.ok() && record->record == nullptr)) {
    delivery.confirmed = true;
    return Resume(turn, op);
  }
  if (!record.ok()) return End(op);  // unreadable: the next pass tries again
  delivery.to = heir;
  // To a replica of now goes what was kept for the one of then, and no more.
  const CutRecord& sent = heir == delivery.target ? *record : data;
  turn.Send(heir, op, peer::StoreRow{.row_key = delivery.row_key, .record = sent.record, .cut = sent.cut});
}

// Who is to have what a hint is for: the target, while a layout gives it the row; else a replica of now, this
// node if it is one.
NodeId Handoff::HeirOf(const Turn& turn, const KeyspaceSpec& keyspace, const Delivery& delivery) const {
  RowKeyParts parts;
  ParseRowKey(delivery.row_key, parts);
  const Token token{parts.token};
  ReplicaSet replicas = ReplicaSet::Of(*turn.view(), keyspace, token);
  if (const View* const other = turn.layouts.other.get()) {
    const KeyspaceSpec* const there = other->Keyspace(keyspace.id);
    if (there != nullptr) replicas.Join(ReplicaSet::Of(*other, *there, token));
  }
  if (replicas.SlotOf(delivery.target) >= 0) return delivery.target;
  if (replicas.SlotOf(turn.self) >= 0) return turn.self;
  const auto ids = replicas.ids();
  const auto up = std::ranges::find_if(ids, [&](NodeId node) { return turn.Up(node); });
  return up == ids.end() ? replicas[0] : *up;
}

void Handoff::StoreReply(const Turn& turn, NodeId from, OpId op, absl::StatusCode code) {
  const auto found = sent_.find(op);
  if (found == sent_.end() || found->second.to != from || !found->second.sent) return;
  // Below the target's stable cut nothing is owed any more.
  if (code != absl::StatusCode::kOk && code != absl::StatusCode::kOutOfRange) {
    passes_[found->second.target].next = turn.now.steady + kPassesApart;  // it cannot take any just now
    return End(op);
  }
  found->second.confirmed = true;
  Resume(turn, op);
}

// With the hint goes what it alone may have known of this node's own writes: the actor ends (design, section
// 5).
void Handoff::Erase(const Turn& turn, const Delivery& delivery, RowTable::Entry& hint) {
  if (SeenCounter(*hint.latest, replica_.clock().actor()) > 0) replica_.clock().Retire();
  replica_.Commit(turn, NodeId{}, 0, MakeHintKey(delivery.target.value, delivery.row_key), hint, nullptr);
}

void Handoff::End(OpId op) {
  const auto found = sent_.find(op);
  if (found == sent_.end()) return;
  Pass& pass = passes_[found->second.target];
  if (pass.under_way > 0) --pass.under_way;
  sent_.erase(found);
}

void Handoff::Await(const Turn& turn, const AwaitHints& asked) {
  if (waiting_.size() >= kWaitingMax) {
    const absl::Status full =
        absl::ResourceExhaustedError("too many wait for hints already; look without waiting");
    turn.out.replies.push_back({asked.ticket, {.status = full}});
    return;
  }
  waiting_.push_back({.ticket = asked.ticket, .deadline = asked.deadline});
}

void Handoff::AnswerWaiting(const Turn& turn) {
  std::erase_if(waiting_, [&](Waiting& waiting) {
    if (counted_ && !std::exchange(waiting.counted, true)) {
      for (const auto& [node, count] : replica_.hints())
        waiting.delivered[node] = Delivered(node) + count.hints;
    }
    if (!IsOver(turn, waiting) && turn.now.steady < waiting.deadline) return false;
    turn.out.replies.push_back({waiting.ticket, {}});
    return true;
  });
}

uint64_t Handoff::Delivered(NodeId node) const {
  const auto delivered = replica_.hints_delivered().find(node);
  return delivered == replica_.hints_delivered().end() ? 0 : delivered->second;
}

bool Handoff::IsOver(const Turn& turn, const Waiting& waiting) const {
  const bool all_up =
      turn.view() != nullptr && std::ranges::all_of(turn.view()->layout.members,
                                                    [&](const Member& member) { return turn.Up(member.id); });
  return all_up && waiting.counted && std::ranges::all_of(waiting.delivered, [&](const auto& goal) {
           return !replica_.hints().contains(goal.first) || Delivered(goal.first) >= goal.second;
         });
}

void Handoff::PeerUp(const Turn& turn, NodeId node) { passes_[node] = {.up = true, .next = turn.now.steady}; }

void Handoff::PeerLost(NodeId node) {
  std::erase_if(sent_, [&](const auto& each) { return each.second.target == node; });
  passes_[node] = {};
}

}  // namespace gyre
