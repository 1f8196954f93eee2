// The control loop of a simulated node: a real Membership, driven as the control thread drives it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/core/membership.h"
#include "tests/sim/node.h"
#include "tests/sim/world.h"

namespace gyre::sim {

class SimControl {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    virtual void Told(SimNode& from, const std::string& to_address, const control::Message& message) = 0;
    // This node must end: it was removed.
    virtual void Removed(SimNode& node) = 0;
  };

  SimControl(World& world, Host& host, SimNode& node) : world_(world), host_(host), node_(node) {}

  static std::string AddressOf(const SimNode& node) { return node.name(); }
  // What a member has on its disk that helped to form the cluster.
  static void Form(SimNode& node, const Layout& first);

  // Begins a life, and with it the node's: on what the last ones left on its disk. False: it was removed, and
  // may not start any more.
  bool Start(const std::vector<std::string>& seeds);
  void Stop();

  void Receive(control::Message message);
  void WantLayout(NodeId from);
  using Done = std::function<void(const absl::Status& status)>;
  void Change(LayoutChange::What what, Micros timeout, Done done);

  bool running() const { return membership_.has_value(); }
  // REQUIRES: running.
  const Membership& membership() const { return *membership_; }
  const Layouts& layouts() const { return membership_->layouts(); }

 private:
  void Turn();
  void WakeAt(Micros when);
  void Carry(MembershipOutbox& out);
  bool Persist();

  World& world_;
  Host& host_;
  SimNode& node_;
  std::optional<Membership> membership_;
  std::deque<std::function<void(Now now, MembershipOutbox& out)>> inbox_;
  MembershipOutbox out_;  // what is not durable yet
  bool blocked_ = false;  // the disk refuses it
  std::map<uint64_t, Done> waiting_;
  uint64_t next_ticket_ = 1;
  uint64_t life_ = 0;
  std::optional<Micros> wake_;
};

}  // namespace gyre::sim
