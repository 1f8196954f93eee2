// The control thread: drives membership as a lane drives a node. Few messages, each decision durable before
// it is told.
//
// Threads: everything public may be called from any thread.
#pragma once

#include <absl/status/statusor.h>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "server/core/membership.h"
#include "server/lane/cluster_state.h"
#include "server/lane/commit_thread.h"
#include "server/lane/inbox.h"
#include "server/lane/runtime.h"
#include "server/lane/stop_flag.h"

namespace gyre {

class ControlThread {
 public:
  // Called on the control thread.
  struct Hooks {
    std::function<void(const std::string& to_address, const control::Message& message)> tell;
    std::function<void(const Layouts& layouts)> new_layouts;  // in the order of their stamps
    std::function<LaneSteps()> steps;                         // what the lane has done about them
    // After every round: who there is, and (sorted by id) who of the members is suspected.
    std::function<void(const ClusterState::Known& known, const std::vector<NodeId>& suspects)> known;
    std::function<NodeFactsValue()> facts;  // what this node says of itself
    std::function<void(const std::string& sentence)> log;
    std::function<void(const std::string& sentence)> removed;  // this node must end, and why; called once
  };
  // What membership persisted in earlier lives must have been given to `membership` already.
  ControlThread(Membership membership, Clock& clock, CommitThread& disk, ClusterState& state, Hooks hooks);
  ~ControlThread() { Stop(); }

  void Receive(control::Message message) { inbox_.Push(std::move(message)); }
  // This peer knows more of the layouts: it is asked at once.
  void WantLayout(NodeId from) { inbox_.Push(LayoutWantedFrom{from}); }

  // Asks for a change of the layout; `done` is called once, on the control thread: the view that has it, or
  // why not.
  using Done = std::function<void(absl::StatusOr<std::shared_ptr<const View>>)>;
  void Change(LayoutChange::What what, Micros timeout, Done done);

  // Idempotent. Changes under way are answered with UNKNOWN.
  void Stop();

  // What Membership persists lies below kMetaMembership in Table::kMeta.
  static absl::StatusOr<std::map<std::string, std::string>> Load(Engine& engine);

 private:
  struct LayoutWantedFrom {
    NodeId peer;
  };
  struct ChangeWanted {
    LayoutChange change;
    Micros timeout;
    Done done;
  };
  using Item = std::variant<control::Message, ChangeWanted, LayoutWantedFrom>;

  void Loop();
  void Step(Now now, Item item);
  void Carry(MembershipOutbox& out);
  void Persist(const std::vector<MembershipOutbox::Persist>& persists);

  Membership membership_;
  Clock& clock_;
  CommitThread& disk_;
  ClusterState& state_;
  const Hooks hooks_;
  Inbox<Item> inbox_;
  MembershipOutbox out_;
  std::map<uint64_t, Done> waiting_;  // by ticket
  uint64_t next_ticket_ = 1;
  StopFlag stopping_;
  std::thread thread_;
};

}  // namespace gyre
