// The coordinator when layouts change under what is under way.
#include <algorithm>
#include <bit>
#include <utility>

#include "server/core/coordinator.h"
#include "server/core/coordinator_ops.h"

namespace gyre {

// Writes that were sent reach out to whoever else holds the key now, and need a quorum by each layout. Those
// that were not begin anew. Reads go on: replicas that read by another layout refuse them.
void Coordinator::LayoutsChanged(const Turn& turn) {
  std::vector<OpId> ids;
  for (const auto& [id, op] : ops_) {
    const auto* const write = std::get_if<WriteOp>(op.get());
    if (write != nullptr && !write->replied) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());  // the map's order is no one's business
  for (const OpId id : ids) {
    WriteOp& op = *Find<WriteOp>(id);
    if (op.quorum.replicas() == 0) {
      BeginAnew(turn, id);
    } else {
      Extend(turn, id, op);
    }
  }
}

template <typename AnyOp>
void Coordinator::BeginAnewSoon(const Turn& turn, OpId id, AnyOp& op) {
  if (std::exchange(op.behind, true)) return;
  AlarmAt(turn.now.steady + kLayoutPause, id);
}
template void Coordinator::BeginAnewSoon(const Turn&, OpId, WriteOp&);
template void Coordinator::BeginAnewSoon(const Turn&, OpId, ReadOp&);
template void Coordinator::BeginAnewSoon(const Turn&, OpId, ScanOp&);

// REQUIRES: nothing of it was stored or sent.
void Coordinator::BeginAnew(const Turn& turn, OpId id) {
  const auto found = ops_.find(id);
  const std::unique_ptr<Op> op = std::move(found->second);
  ops_.erase(found);
  if (auto* write = std::get_if<WriteOp>(op.get())) {
    return BeginWrite(turn, write->origin, std::move(write->call), write->is_delete, write->deadline);
  }
  if (auto* read = std::get_if<ReadOp>(op.get())) {
    return BeginRead(turn, read->origin, std::move(read->call), read->deadline);
  }
  auto& scan = std::get<ScanOp>(*op);
  BeginScan(turn, scan.origin, std::move(scan.call), scan.deadline);
}

void Coordinator::Extend(const Turn& turn, OpId id, WriteOp& op) {
  const KeyspaceSpec* const keyspace = turn.view()->Keyspace(op.keyspace->id);
  if (keyspace == nullptr) return;  // it was dropped
  const WriteOp before = std::exchange(op, {});
  op = before;
  op.view = turn.view();
  op.keyspace = keyspace;
  op.replicas = HoldersOf(turn, *keyspace, TokenOf(op.call.key), op.call.strict);
  op.to_resend = 0;
  // Too few that can be reached are no reason to give up: what was sent takes effect.
  PrepareQuorum(turn, op).IgnoreError();
  if (op.need.slots != op.replicas.first()) {  // there are fewer replicas now than must answer
    op.need = {op.replicas.first(), static_cast<uint8_t>(std::popcount(op.replicas.first()))};
    op.need_other = {};
  }
  op.quorum = Quorum(op.replicas.size(), op.need, op.need_other);
  for (int slot = 0; slot < op.replicas.size(); ++slot) {
    int was = before.replicas.SlotOf(op.replicas[slot]);
    if (was >= 0 && before.replicas.hint_for(was) != op.replicas.hint_for(slot)) was = -1;
    const bool sent = was >= 0 && (before.to_resend >> was & 1) == 0;
    if (sent && before.quorum.SaidYes(was)) {
      op.quorum.Yes(slot);
    } else if (sent && before.quorum.Answered(was)) {
      op.quorum.No(slot);
    } else if (!sent && op.replicas[slot] != turn.self) {
      SendTo(turn, id, op, slot);
    }
  }
  SettleWrite(turn, id, op);
}

}  // namespace gyre
