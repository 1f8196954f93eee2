// Gather: reads one row from its replicas.
#include "server/core/gather.h"

namespace gyre {

auto Gather::Ask(const Turn& turn, OpId op) const {
  return [this, &turn, op](NodeId to) {
    const ReplicaSet& replicas = fanout_.replicas();
    turn.Send(to, op, peer::FetchRow{row_key_, replicas.hint_for(replicas.SlotOf(to))});
  };
}

void Gather::Start(const Turn& turn, OpId op) { fanout_.Start(turn, Ask(turn, op)); }

void Gather::AskNext(const Turn& turn, OpId op) { fanout_.AskNext(turn, Ask(turn, op)); }

Verdict Gather::Lost(const Turn& turn, OpId op, NodeId node) {
  return fanout_.Lost(turn, node, Ask(turn, op));
}

Verdict Gather::Answer(const Turn& turn, OpId op, NodeId from, const peer::FetchReply& reply) {
  const int slot = fanout_.Awaited(from);
  if (slot < 0) return fanout_.verdict();
  if (reply.code != absl::StatusCode::kOk) return fanout_.Failed(turn, slot, Ask(turn, op));
  records_[static_cast<size_t>(slot)] = {reply.record, reply.cut};
  good_ = static_cast<uint8_t>(good_ | 1u << slot);
  return fanout_.Yes(slot);
}

absl::StatusOr<CutRecord> Gather::Merged(ConflictRule rule) const {
  std::optional<CutRecord> merged;
  for (int slot = 0; slot < fanout_.replicas().size(); ++slot) {
    if ((good_ >> slot & 1) == 0) continue;
    const CutRecord& answer = records_[static_cast<size_t>(slot)];
    if (!merged) {
      // Decoded as the others are, so that damage shows.
      absl::StatusOr<CutRecord> first = MergeAtCuts({nullptr, answer.cut}, answer, rule);
      if (!first.ok()) return first;
      merged = *std::move(first);
      continue;
    }
    absl::StatusOr<CutRecord> next = MergeAtCuts(*merged, answer, rule);
    if (!next.ok()) return next;
    merged = *std::move(next);
  }
  return merged.value_or(CutRecord{});
}

std::vector<NodeId> Gather::Stale(const RecordBytes& merged) const {
  std::vector<NodeId> stale;
  for (int slot = 0; slot < fanout_.replicas().size(); ++slot) {
    const bool answered = (good_ >> slot & 1) != 0 && !fanout_.replicas().hint_for(slot);
    if (answered && !SameRecord(records_[static_cast<size_t>(slot)].record, merged))
      stale.push_back(fanout_.replicas()[slot]);
  }
  return stale;
}

}  // namespace gyre
