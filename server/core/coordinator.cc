// The coordinator: which operation an answer, a lost link or a timer belongs to.
#include "server/core/coordinator.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "server/core/coordinator_ops.h"

namespace gyre {

void Coordinator::Begin(const Turn& turn, Origin origin, Call call, Micros deadline) {
  if (turn.view() == nullptr) {
    return Fail(
        turn, origin,
        absl::UnavailableError("this node has not joined a cluster yet: it still looks for the others"));
  }
  if (calls_in_flight() >= limits_.calls_in_flight) {
    return Fail(turn, origin,
                absl::ResourceExhaustedError("this node works on " + std::to_string(calls_in_flight()) +
                                             " calls already, its limit; send more slowly"));
  }
  if (auto* put = std::get_if<PutCall>(&call))
    return BeginWrite(turn, origin, std::move(*put), false, deadline);
  if (auto* del = std::get_if<DeleteCall>(&call)) {
    PutCall write = {.keyspace = std::move(del->keyspace),
                     .key = std::move(del->key),
                     .w = del->w,
                     .strict = del->strict,
                     .context = std::move(del->context)};
    return BeginWrite(turn, origin, std::move(write), true, deadline);
  }
  if (auto* get = std::get_if<GetCall>(&call)) return BeginRead(turn, origin, std::move(*get), deadline);
  BeginScan(turn, origin, std::get<ScanCall>(std::move(call)), deadline);
}

void Coordinator::FetchReply(const Turn& turn, NodeId from, OpId id, peer::FetchReply reply) {
  // What may go is gone on some replicas and not yet on others: that is no difference.
  reply.record = Collected(reply.record, replica_.cuts().all);
  if (auto* write = Find<WriteOp>(id); write != nullptr && write->gather) {
    if (reply.code == kWrongLayout || write->behind) return BeginAnewSoon(turn, id, *write);
    write->gather->Answer(turn, id, from, reply);
    SettleGather(turn, id, *write);
  } else if (auto* read = Find<ReadOp>(id)) {
    if (!read->replied && (reply.code == kWrongLayout || read->behind)) {
      return BeginAnewSoon(turn, id, *read);
    }
    if (!read->replied) fetch_latency_.Add(turn.now.steady - read->started);
    read->gather.Answer(turn, id, from, reply);
    SettleRead(turn, id, *read);
  }
}

void Coordinator::FetchPageReply(const Turn& turn, NodeId from, OpId id, peer::FetchPageReply reply) {
  if (auto* scan = Find<ScanOp>(id)) {
    if (reply.code == kWrongLayout || scan->behind) return BeginAnewSoon(turn, id, *scan);
    scan->merge.Answer(turn, id, from, std::move(reply));
    SettleScan(turn, id, *scan);
  }
}

void Coordinator::Forward(const Turn& turn, Origin origin, NodeId to, Call call, Micros deadline) {
  const OpId id = next_op_++;
  Add(id, ForwardOp{origin, to}, deadline);
  // Its word of what it lacked is to come before this node waits no more.
  const Micros left = deadline - turn.now.steady;
  turn.Send(to, id, peer::Forward{std::move(call), Micros{left.value - left.value / 10}});
}

bool Coordinator::AnyBefore(OpId op) const {
  return std::ranges::any_of(ops_, [&](const auto& each) { return each.first < op; });
}

void Coordinator::ForwardReply(const Turn& turn, NodeId from, OpId id, CallResult result) {
  if (auto* forward = Find<ForwardOp>(id); forward != nullptr && forward->to == from) {
    Reply(turn, forward->origin, std::move(result));
    ops_.erase(id);
  }
}

void Coordinator::PeerLost(const Turn& turn, NodeId node) {
  std::vector<OpId> ids;
  ids.reserve(ops_.size());
  for (const auto& [id, op] : ops_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());  // the map's order is no one's business
  for (const OpId id : ids) {
    if (auto* write = Find<WriteOp>(id)) {
      if (write->behind) continue;
      if (write->gather) {
        write->gather->Lost(turn, id, node);
        SettleGather(turn, id, *write);
      } else if (write->quorum.replicas() > 0) {
        StoreReply(turn, node, id, absl::StatusCode::kUnavailable);
      }
    } else if (auto* read = Find<ReadOp>(id)) {
      if (read->behind && !read->replied) continue;
      read->gather.Lost(turn, id, node);
      SettleRead(turn, id, *read);
    } else if (auto* scan = Find<ScanOp>(id)) {
      if (scan->behind) continue;
      scan->merge.Lost(turn, id, node);
      SettleScan(turn, id, *scan);
    } else if (auto* forward = Find<ForwardOp>(id); forward != nullptr && forward->to == node) {
      OnTimer(turn, id);
    }
  }
}

void Coordinator::AlarmAt(Micros when, OpId id) {
  // Operations end long before their deadlines: their alarms must not outnumber those that still run.
  constexpr size_t kEndedMax = 1024;
  if (alarms_.size() > 4 * ops_.size() + kEndedMax) {
    std::erase_if(alarms_, [&](const Alarm& alarm) { return !ops_.contains(alarm.id); });
    std::make_heap(alarms_.begin(), alarms_.end(), std::greater<>());
  }
  alarms_.push_back({when, id});
  std::push_heap(alarms_.begin(), alarms_.end(), std::greater<>());
}

void Coordinator::Tick(const Turn& turn) {
  while (!alarms_.empty() && alarms_.front().when <= turn.now.steady) {
    const OpId id = alarms_.front().id;
    std::pop_heap(alarms_.begin(), alarms_.end(), std::greater<>());
    alarms_.pop_back();
    OnTimer(turn, id);
  }
}

std::optional<Micros> Coordinator::next_deadline() const {
  if (alarms_.empty()) return std::nullopt;
  return alarms_.front().when;
}

void Coordinator::OnTimer(const Turn& turn, OpId id) {
  if (auto* read = Find<ReadOp>(id); read != nullptr && turn.now.steady < read->deadline) {
    if (read->behind && !read->replied) return BeginAnew(turn, id);
    if (!read->replied) read->gather.AskNext(turn, id);
    return;
  }
  if (auto* scan = Find<ScanOp>(id); scan != nullptr && turn.now.steady < scan->deadline) {
    if (scan->behind) return BeginAnew(turn, id);
    return scan->merge.AskNext(turn, id);
  }
  if (auto* write = Find<WriteOp>(id)) {
    if (turn.now.steady < write->deadline) {
      if (write->behind) return BeginAnew(turn, id);
      if (write->gather) write->gather->AskNext(turn, id);
      return;
    }
    if (!write->replied) Fail(turn, write->origin, WriteTimedOut(write->quorum, write->need.need));
    return EndWrite(turn, id);
  }
  if (auto* read = Find<ReadOp>(id)) {
    const Fanout& fanout = read->gather.fanout();
    if (!read->replied) {
      const bool behind = fanout.verdict() == Verdict::kMet;
      Fail(turn, read->origin, behind ? NotSeenYet() : ReadTimedOut(fanout.quorum()));
    }
    if (read->replied) Repair(turn, *read);
  } else if (auto* scan = Find<ScanOp>(id)) {
    Fail(turn, scan->origin, ReadTimedOut(scan->merge.fanout().quorum()));
  } else if (auto* forward = Find<ForwardOp>(id)) {
    Fail(turn, forward->origin,
         OutcomeUnknown("node " + ToString(forward->to) + ", which coordinates this key, did not answer"));
  }
  ops_.erase(id);
}

void Coordinator::Reply(const Turn& turn, const Origin& origin, CallResult result) const {
  result.layout_epoch = turn.view() ? turn.view()->layout.epoch : 0;
  if (origin.forwarded_by) {
    turn.Send(origin.forwarded_by, origin.forwarded_op, peer::ForwardReply{std::move(result)});
  } else {
    turn.out.replies.push_back({origin.ticket, std::move(result)});
  }
}

void Coordinator::Fail(const Turn& turn, const Origin& origin, absl::Status status) {
  if (origin.forwarded_by && absl::IsInvalidArgument(status)) ++forwards_refused_;
  Reply(turn, origin, {.status = std::move(status)});
}

}  // namespace gyre
