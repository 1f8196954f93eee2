// A Node is the protocol of one node as a value: inputs in, obligations out.
//
// It is driven and never drives. It owns no thread, clock, socket or file; the same inputs at the same times
// always give the same outbox. It sends to itself as it sends to any peer, so that local and remote replicas
// are one code path. NOT thread-safe: one lane owns it.
#pragma once

#include <absl/container/flat_hash_set.h>
#include <memory>
#include <optional>
#include <vector>

#include "server/core/collector.h"
#include "server/core/coordinator.h"
#include "server/core/dropper.h"
#include "server/core/exchange.h"
#include "server/core/giving_pace.h"
#include "server/core/handoff.h"
#include "server/core/message.h"
#include "server/core/movement.h"
#include "server/core/replica.h"
#include "server/core/stable_cut.h"
#include "server/core/turn.h"

namespace gyre {

class Node {
 public:
  struct Config {
    NodeId self;
    NodeLimits limits;
    OpId first_op = 1;     // above every operation of earlier lives of this node
    bool filling = false;  // its store was lost, and it has not compared what it has now with all others
    CutMarks cuts;         // as the last life left them
    MoveState moves;       // the same
  };

  Node(Config config, ActorClock clock);

  // Takes one input and appends what must be done about it. Never blocks.
  // REQUIRES: `now` is not before the `now` of the previous call.
  void Step(Now now, Input input, Outbox& out);
  // These are the next to be stepped, all of them: many rows are fetched from memory in the time of one.
  void Expect(const std::vector<Input>& inputs);
  void Tick(Now now, Outbox& out);              // gives up on work whose deadline is <= now
  std::optional<Micros> next_deadline() const;  // when Tick has something to do; nullopt: not by itself

  // What messages that leave now say of the layouts.
  LayoutMark mark() const { return layouts_.mark(); }
  size_t calls_in_flight() const { return coordinator_.calls_in_flight(); }
  size_t timers() const { return coordinator_.timers(); }  // some of calls that ended
  const NodeLimits& limits() const { return config_.limits; }
  // To be made durable after a drain: nothing is minted any more.
  ActorState CleanState() const { return replica_.clock().CleanState(); }
  // Well-formed nonsense.
  uint64_t peer_messages_refused() const {
    return replica_.stores_refused() + coordinator_.forwards_refused();
  }
  const Replica& replica() const { return replica_; }
  const Exchange& exchange() const { return exchange_; }
  const Handoff& handoff() const { return handoff_; }
  const StableCut& stable_cut() const { return stable_cut_; }
  const Movement& movement() const { return movement_; }
  const Dropper& dropper() const { return dropper_; }
  const Layouts& layouts() const { return layouts_; }
  // What this node has done about its layouts.
  LaneSteps steps() const;

 private:
  static constexpr size_t kAheadMax = 1024;

  void StepFromPeer(const Turn& turn, FromPeer input);
  void StepPageRead(const Turn& turn, PageRead read);
  void StepRowRead(Now now, const Turn& turn, RowRead read);
  void Unreadable(const Turn& turn, Input parked, const absl::Status& status);
  void NoticeFull(const Turn& turn);
  void NoticeMoved(const Turn& turn);
  bool WorksByOther(const Turn& turn, FromPeer& input);
  void NoticeCuts(const Turn& turn);
  void Adopt(Now now, Outbox& out, Layouts layouts);

  const Config config_;
  Layouts layouts_;
  absl::flat_hash_set<NodeId> up_;
  Replica replica_;
  Coordinator coordinator_;
  Exchange exchange_;
  Handoff handoff_;
  StableCut stable_cut_;
  Collector collector_;
  Dropper dropper_;
  Movement movement_;
  GivingPace giving_;
  std::vector<std::string_view> expected_;  // row keys, for Expect
  std::vector<FromPeer> ahead_;             // stores from peers whose layout is newer, until this node has it
  bool draining_ = false;
};

}  // namespace gyre
