// A Node: which half of the protocol an input is for.
#include "server/core/node.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "storage/format/row_key.h"

namespace gyre {
namespace {

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

}  // namespace

Node::Node(Config config, ActorClock clock)
    : config_(config),
      up_({config.self}),
      replica_(config.limits, std::move(clock)),
      coordinator_(config_.limits, replica_, config.first_op),
      exchange_(replica_, config.first_op, config.filling),
      handoff_(replica_, config.first_op),
      stable_cut_(config.cuts, config.limits.drift_ms, config.first_op, replica_),
      collector_(replica_, config.first_op),
      dropper_(replica_, exchange_, config.first_op),
      movement_(replica_, exchange_, dropper_, config.moves) {
  replica_.SetFilling(config.filling);
  replica_.cuts().known = !config.filling;
}

void Node::Step(Now now, Input input, Outbox& out) {
  exchange_.SetDiskIsBehind(replica_.disk_is_behind());
  const Turn turn = {now, config_.self, layouts_, up_, out};
  std::visit(Overloaded{
                 [&](ClientCall& call) {
                   const Origin origin = {.ticket = call.ticket};
                   if (draining_)
                     return coordinator_.Refuse(turn, origin,
                                                absl::UnavailableError("this node is shutting down"));
                   coordinator_.Begin(turn, origin, std::move(call.call), call.deadline);
                 },
                 [&](FromPeer& message) { StepFromPeer(turn, std::move(message)); },
                 [&](RowRead& read) { StepRowRead(now, turn, std::move(read)); },
                 [&](PageRead& read) { StepPageRead(turn, std::move(read)); },
                 [&](SumsRead& read) {
                   if (read.request.asked) return exchange_.AnswerSums(turn, read);
                   exchange_.SumsRead(turn, read.request.op, read.sums);
                 },
                 [&](RepairNow& asked) { exchange_.RepairNow(turn, asked); },
                 [&](Committed& batch) {
                   if (batch.cuts) stable_cut_.Committed(*batch.cuts, batch.status.ok(), replica_);
                   if (!batch.status.ok()) collector_.StartOver();
                   if (batch.moves) movement_.Committed(turn, batch.status.ok());
                   replica_.Committed(turn, std::move(batch));
                   if (replica_.TakeClockAdvanced()) coordinator_.ClockAdvanced(turn);
                 },
                 [&](PeerUp& peer) {
                   up_.insert(peer.node);
                   exchange_.Wake(turn);  // it may have missed something
                   handoff_.PeerUp(turn, peer.node);
                   stable_cut_.PeerUp(turn, peer.node);
                 },
                 [&](PeerDown& peer) {
                   if (peer.node == config_.self || up_.erase(peer.node) == 0) return;
                   stable_cut_.PeerLost(peer.node);
                   coordinator_.PeerLost(turn, peer.node);
                   exchange_.PeerLost(turn, peer.node);
                   handoff_.PeerLost(peer.node);
                   movement_.PeerLost(turn, peer.node);
                   giving_.PeerLost(peer.node);
                 },
                 [&](NewLayouts& next) { Adopt(now, out, std::move(next.layouts)); },
                 [&](StoreHealth& health) {
                   replica_.SetHealth(std::move(health.status));
                   if (replica_.health().ok()) coordinator_.ClockAdvanced(turn);
                 },
                 [&](Drain&) {
                   draining_ = true;
                   coordinator_.Drain(turn);
                 },
                 [&](ResumeWrite& resume) { coordinator_.Resume(turn, resume.op); },
                 [&](AwaitHints& asked) { handoff_.Await(turn, asked); },
                 [&](ResumeHint& resume) { handoff_.Resume(turn, resume.op); },
                 [&](ResumeCollect& resume) { collector_.Resume(turn, resume.op); },
                 [&](ResumeDrop& resume) { dropper_.Resume(turn, resume.op); },
                 [&](ControlMoves& control) {
                   movement_.Control(turn, control);
                   giving_.Forgive();
                 },
             },
             input);
  NoticeFull(turn);
  NoticeMoved(turn);
  NoticeCuts(turn);
}

void Node::NoticeMoved(const Turn& turn) {
  for (const Exchange::ErrandEnd& end : exchange_.TakeErrandEnds()) {
    if (dropper_.Owns(end.id)) {
      dropper_.ErrandEnded(turn, end.id, end.ok);
    } else {
      movement_.ErrandEnded(turn, end.id, end.ok);
    }
  }
}

LaneSteps Node::steps() const {
  if (layouts_.view == nullptr) return {};
  return {.stamp = layouts_.stamp,
          .epoch = layouts_.view->layout.epoch,
          .ready = movement_.ready(),
          .synced = movement_.synced(),
          .done = !layouts_.moving() && dropper_.done()};
}

// Writes that waited until it is known above what this node must mint.
void Node::NoticeCuts(const Turn& turn) {
  bool& known = replica_.cuts().known;
  if (known || turn.view() == nullptr || !stable_cut_.KnowsWhatWasPromised(turn)) return;
  known = true;
  coordinator_.ClockAdvanced(turn);
}

void Node::NoticeFull(const Turn& turn) {
  if (!replica_.filling() || exchange_.filling()) return;
  replica_.SetFilling(false);
  stable_cut_.Filled(turn, replica_);
}

void Node::Expect(const std::vector<Input>& inputs) {
  expected_.clear();
  for (const Input& input : inputs) {
    const auto* const from_peer = std::get_if<FromPeer>(&input);
    if (from_peer == nullptr) continue;
    const auto& body = from_peer->message.body;
    if (const auto* store = std::get_if<peer::StoreRow>(&body)) expected_.push_back(store->row_key);
    if (const auto* fetch = std::get_if<peer::FetchRow>(&body)) expected_.push_back(fetch->row_key);
  }
  replica_.rows().Expect(expected_);
}

void Node::Tick(Now now, Outbox& out) {
  const Turn turn = {now, config_.self, layouts_, up_, out};
  replica_.rows().Evict();
  exchange_.SetDiskIsBehind(replica_.disk_is_behind());
  if (!draining_) replica_.PersistClock(turn);
  coordinator_.Tick(turn);
  if (draining_) return;
  exchange_.Tick(turn);
  handoff_.Tick(turn);
  NoticeFull(turn);
  stable_cut_.Tick(turn, {replica_, coordinator_, exchange_, handoff_});
  coordinator_.SetClockIsOff(stable_cut_.clock_is_off());
  collector_.Tick(turn);
  dropper_.Tick(turn);
  movement_.Tick(turn);
  NoticeMoved(turn);
  // One at a time: what is in it is known, and charged, when it has been read.
  if (std::optional<FromPeer> request = giving_.TakeDue(turn.now.steady))
    StepFromPeer(turn, *std::move(request));
}

std::optional<Micros> Node::next_deadline() const {
  std::optional<Micros> next = stable_cut_.next_deadline();
  for (const std::optional<Micros> each :
       {coordinator_.next_deadline(), exchange_.next_deadline(), handoff_.next_deadline(),
        collector_.next_deadline(), dropper_.next_deadline(), movement_.next_deadline(),
        giving_.next_deadline()}) {
    if (each) next = next ? std::min(*next, *each) : *each;
  }
  return next;
}

void Node::StepFromPeer(const Turn& turn, FromPeer input) {
  if (layouts_.view == nullptr) {
    turn.out.layout_wanted_from = input.from;
    return;
  }
  const uint64_t epoch = layouts_.view->layout.epoch;
  if (input.layout.epoch > epoch) turn.out.layout_wanted_from = input.from;
  const NodeId from = input.from;
  const OpId op = input.message.op;
  if (WorksByOther(turn, input)) return;
  std::visit(
      Overloaded{
          [&](peer::Forward& forward) {
            const Origin origin = {.forwarded_by = from, .forwarded_op = op};
            if (draining_)
              return coordinator_.Refuse(turn, origin, absl::UnavailableError("this node is shutting down"));
            coordinator_.Begin(turn, origin, std::move(forward.call), turn.now.steady + forward.timeout);
          },
          [&](peer::ForwardReply& reply) {
            coordinator_.ForwardReply(turn, from, op, std::move(reply.result));
          },
          [&](peer::StoreRow& store) {
            RowKeyParts parts;
            const bool unknown =
                ParseRowKey(store.row_key, parts) && layouts_.view->Keyspace(parts.keyspace) == nullptr;
            // The sender knows a layout with this keyspace: it is on its way to us.
            if (unknown && input.layout.epoch > epoch && ahead_.size() < kAheadMax) {
              ahead_.push_back(std::move(input));
            } else {
              replica_.StoreRow(turn, std::move(input));
            }
          },
          [&](peer::StoreReply& reply) {
            switch (KindOf(op)) {
              case OpKind::kCall:
                return coordinator_.StoreReply(turn, from, op, reply.code);
              case OpKind::kExchange:
                return exchange_.StoreReply(turn, from, op, reply);
              case OpKind::kHandoff:
                return handoff_.StoreReply(turn, from, op, reply.code);
              case OpKind::kMovement:
                if (from != turn.self) return;
                if (dropper_.Owns(op)) return dropper_.Confirmed(turn, op, reply.code);
                return movement_.RowStored(turn, op, reply.code);
            }
          },
          [&](peer::FetchRow&) { replica_.FetchRow(turn, std::move(input)); },
          [&](peer::FetchReply& reply) { coordinator_.FetchReply(turn, from, op, std::move(reply)); },
          [&](peer::FetchPage& page) {
            if (page.move && !giving_.Admits(turn.now.steady)) return giving_.Wait(std::move(input));
            replica_.FetchPage(turn, std::move(input));
          },
          [&](peer::FetchPageReply& reply) {
            if (KindOf(op) == OpKind::kMovement) return movement_.PageReply(turn, from, op, std::move(reply));
            coordinator_.FetchPageReply(turn, from, op, std::move(reply));
          },
          [&](peer::CompareSums& asked) {
            turn.out.sum_reads.push_back({from, op, std::move(asked.slices), std::move(asked.sums)});
          },
          [&](peer::CompareSumsReply& reply) { exchange_.SumsReply(turn, from, op, reply); },
          [&](peer::CompareRows& asked) {
            // What is wanted of it would be more to write.
            if (replica_.disk_is_behind()) {
              return turn.Send(from, op,
                               peer::CompareRowsReply{.code = absl::StatusCode::kResourceExhausted});
            }
            const peer::FetchPage page = {asked.after, asked.end, ScanCall::kRowsMax,
                                          peer::FetchPage::kBytesMax};
            turn.out.page_reads.push_back({from, op, PageRequest::Use::kCompare, page, std::move(asked)});
          },
          [&](peer::CompareRowsReply& reply) { exchange_.RowsReply(turn, from, op, reply); },
          [&](peer::CutState& state) {
            stable_cut_.Receive(turn, from, input.layout.fence, op, state, replica_);
          },
      },
      input.message.body);
}

// Whether an operation on rows comes from a node that works by other layouts than this one, as far as who
// holds what goes. Who is behind is refused, and learns so; what comes of who is ahead waits until this node
// has its layout.
bool Node::WorksByOther(const Turn& turn, FromPeer& input) {
  const auto& body = input.message.body;
  const bool fetch = std::holds_alternative<peer::FetchRow>(body);
  const auto* const page = std::get_if<peer::FetchPage>(&body);
  const bool store = std::holds_alternative<peer::StoreRow>(body);
  if (!fetch && page == nullptr && !store) return false;
  const LayoutMark ours = mark();
  const LayoutMark& theirs = input.layout;
  const auto refuse = [&](absl::StatusCode code) {
    if (store) {
      turn.Send(input.from, input.message.op, peer::StoreReply{code});
    } else if (fetch) {
      turn.Send(input.from, input.message.op, peer::FetchReply{.code = code});
    } else {
      turn.Send(input.from, input.message.op, peer::FetchPageReply{.code = code});
    }
    return true;
  };
  if (theirs.fence > ours.fence) {
    if (ahead_.size() >= kAheadMax) return refuse(absl::StatusCode::kUnavailable);
    ahead_.push_back(std::move(input));
    return true;
  }
  if (theirs.fence < ours.fence) return refuse(kWrongLayout);
  // Once this node reads by the newest layout, writes may reach no quorum of the one before.
  const bool reads = fetch || (page != nullptr && !page->move);
  if (reads && theirs.reads_other && !ours.reads_other) return refuse(kWrongLayout);
  return false;
}

void Node::StepPageRead(const Turn& turn, PageRead read) {
  switch (read.request.use) {
    case PageRequest::Use::kFetch:
      read.reply.cut = replica_.read_cut(read.request.page.after, read.request.page.end);
      if (read.request.page.move) giving_.Charge(turn.now.steady, movement_.TimeOf(read.reply.rows));
      return turn.Send(read.request.asked_by, read.request.op, std::move(read.reply));
    case PageRequest::Use::kExchange:
      return exchange_.PageRead(turn, read.request.op, std::move(read.reply));
    case PageRequest::Use::kCompare:
      return exchange_.AnswerRows(turn, std::move(read));
    case PageRequest::Use::kHandoff:
      return handoff_.PageRead(turn, read.request.op, read.reply);
    case PageRequest::Use::kDrop:
      return dropper_.PageRead(turn, read.request.op, read.reply);
    case PageRequest::Use::kCollect:
      return collector_.PageRead(turn, read.request.op, read.reply);
  }
}

void Node::StepRowRead(Now now, const Turn& turn, RowRead read) {
  if (!read.record.ok()) {
    for (Input& parked : replica_.rows().LoadFailed(read.row_key)) {
      Unreadable(turn, std::move(parked), read.record.status());
    }
    return;
  }
  for (Input& parked : replica_.rows().Loaded(read.row_key, *std::move(read.record))) {
    Step(now, std::move(parked), turn.out);
  }
}

// What waited for a row that cannot be read is answered with an error, never with "no row".
void Node::Unreadable(const Turn& turn, Input parked, const absl::Status& status) {
  if (const auto* resume = std::get_if<ResumeWrite>(&parked)) {
    return coordinator_.RowUnreadable(turn, resume->op, status);
  }
  if (const auto* resume = std::get_if<ResumeHint>(&parked)) return handoff_.RowUnreadable(resume->op);
  if (const auto* resume = std::get_if<ResumeDrop>(&parked)) return dropper_.RowUnreadable(resume->op);
  if (const auto* resume = std::get_if<ResumeCollect>(&parked)) return collector_.RowUnreadable(resume->op);
  const auto& input = std::get<FromPeer>(parked);
  if (std::holds_alternative<peer::FetchRow>(input.message.body)) {
    turn.Send(input.from, input.message.op, peer::FetchReply{.code = status.code()});
  } else {
    turn.Send(input.from, input.message.op, peer::StoreReply{status.code()});
  }
}

void Node::Adopt(Now now, Outbox& out, Layouts layouts) {
  assert(layouts.view != nullptr);
  if (layouts_.view != nullptr && layouts.view->layout.epoch < layouts_.view->layout.epoch) return;
  const bool first = layouts_.view == nullptr;
  const bool others = first || layouts.view->layout.fence != layouts_.view->layout.fence ||
                      layouts.moving() != layouts_.moving();
  if (layouts.view != layouts_.view) replica_.rows().DropIdle();
  layouts_ = std::move(layouts);
  const Turn turn = {now, config_.self, layouts_, up_, out};
  if (others) {
    exchange_.ForgetProof();
    dropper_.LayoutsChanged(turn);
    // A new member mints above all that the others promised.
    const bool joins = layouts_.moving() && layouts_.other->ring.IndexOf(config_.self) < 0 &&
                       layouts_.view->ring.IndexOf(config_.self) >= 0;
    if (joins) replica_.cuts().known = false;
  }
  movement_.LayoutsChanged(turn);
  if (others && !first) coordinator_.LayoutsChanged(turn);
  for (FromPeer& input : std::exchange(ahead_, {})) Step(now, std::move(input), out);
}

}  // namespace gyre
