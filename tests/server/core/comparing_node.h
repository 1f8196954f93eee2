// A node driven by hand that compares with peers who answer as a test says.
#pragma once

#include <functional>
#include <utility>

#include "tests/server/core/driven_node.h"

namespace gyre {

struct ComparingNodeTest : NodeTest {
  static constexpr uint64_t kNow = CounterOfMillis(kWallMs);
  OpId said = 0;

  void BothSay(const peer::CutState& state) {
    for (const NodeId node : {kB, kC}) Step(FromPeer{node, {1}, {++said, state}});
  }
  void Live(Micros time) {
    for (Micros end = now.steady + time; now.steady < end;) {
      now.steady = now.steady + Millis(100);
      now.wall_ms += 100;
      Tick();
      Commit();
    }
  }
  // Plays the comparisons under way until nothing is asked any more. `answer` answers what this node sends.
  void Compare(const std::function<void(const Outbox::Send&)>& answer) {
    for (bool more = true; more;) {
      more = false;
      for (SumRequest& request : std::exchange(out.sum_reads, {})) {
        SumsRead read = {.request = request};
        read.sums.assign(request.slices.size(), RowHash{});
        Step(std::move(read));
      }
      Settle();
      for (const Outbox::Send& send : Sent()) {
        answer(send);
        more = true;
      }
    }
  }
  void CompareAllEqual() {
    Compare([&](const Outbox::Send& send) {
      if (!std::holds_alternative<peer::CompareSums>(send.message.body)) return;
      Answer(send.to, send.message.op, peer::CompareSumsReply{});
    });
  }
};

}  // namespace gyre
