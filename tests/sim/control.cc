// The control loop of a simulated node.
#include "tests/sim/control.h"

#include <cassert>
#include <utility>

#include "server/core/membership_codec.h"
#include "server/lane/control_thread.h"
#include "storage/format/meta_codec.h"

namespace gyre::sim {
namespace {

constexpr Micros kPersistAgain = Millis(200);

}  // namespace

void SimControl::Form(SimNode& node, const Layout& first) {
  const EngineWrite fact = {Table::kMeta, std::string(kMetaMembership) + "layout",
                            std::make_shared<const std::string>(EncodeLayout(first))};
  const absl::Status formed = node.engine().Apply({&fact, 1}, Durability::kDisk, "");
  assert(formed.ok());
  (void)formed;
}

bool SimControl::Start(const std::vector<std::string>& seeds) {
  assert(!running());
  ++life_;
  absl::StatusOr<std::map<std::string, std::string>> persisted = ControlThread::Load(node_.engine());
  assert(persisted.ok());
  Membership::Config config;
  config.self = {.id = node_.id(),
                 .address = "client-" + AddressOf(node_),
                 .peer_address = AddressOf(node_),
                 .zone = "",
                 .generation = static_cast<uint64_t>(world_.now().value)};
  config.seeds = seeds;
  config.bootstrap_expect = 1000;  // no cluster forms by itself
  config.random_seed = world_.random().Next();
  absl::Status status;
  membership_.emplace(std::move(config), *persisted, &status);
  assert(status.ok());
  if (!membership_->removed().empty()) {
    membership_.reset();
    return false;
  }
  node_.Start(membership_->layouts());
  WakeAt(world_.now());
  return true;
}

void SimControl::Stop() {
  ++life_;
  membership_.reset();
  inbox_.clear();
  out_ = {};
  blocked_ = false;
  wake_.reset();
  for (auto& [ticket, done] : std::exchange(waiting_, {})) done(absl::UnknownError("the node crashed"));
}

void SimControl::Receive(control::Message message) {
  if (!running()) return;
  inbox_.push_back([this, message = std::move(message)](Now now, MembershipOutbox& out) {
    membership_->Step(now, message, out);
  });
  WakeAt(world_.now());
}

void SimControl::WantLayout(NodeId from) {
  if (!running()) return;
  inbox_.push_back([this, from](Now now, MembershipOutbox& out) { membership_->WantLayout(now, from, out); });
  WakeAt(world_.now());
}

void SimControl::Change(LayoutChange::What what, Micros timeout, Done done) {
  if (!running()) return done(absl::UnavailableError("connection refused"));
  const uint64_t ticket = next_ticket_++;
  waiting_[ticket] = std::move(done);
  inbox_.push_back([this, ticket, timeout, what = std::move(what)](Now now, MembershipOutbox& out) {
    membership_->Change(now, {.ticket = ticket, .deadline = now.steady + timeout, .what = what}, out);
  });
  WakeAt(world_.now());
}

void SimControl::WakeAt(Micros when) {
  if (wake_ && *wake_ <= when) return;
  wake_ = when;
  world_.At(when, [this, when, life = life_] {
    if (life == life_ && wake_ == when) Turn();
  });
}

void SimControl::Turn() {
  wake_.reset();
  if (node_.paused()) return WakeAt(node_.paused_until());
  if (blocked_ && !Persist()) return WakeAt(world_.now() + kPersistAgain);
  const auto each = [&](const auto& step) {
    membership_->SetLaneSteps(node_.lane().node().steps());
    step(node_.Time(), out_);
    return Persist();
  };
  while (!inbox_.empty()) {
    const auto step = std::move(inbox_.front());
    inbox_.pop_front();
    if (!each(step)) return WakeAt(world_.now() + kPersistAgain);
    if (!running()) return;
  }
  if (!each([&](Now now, MembershipOutbox& out) { membership_->Tick(now, out); })) {
    return WakeAt(world_.now() + kPersistAgain);
  }
  if (!running()) return;
  const Micros next = membership_->next_deadline() - node_.Steady();
  WakeAt(world_.now() + std::max(next, Millis(1)));
}

// A decision that is not durable is not told. False: it could not be made so.
bool SimControl::Persist() {
  if (!out_.persists.empty()) {
    std::vector<EngineWrite> writes;
    for (const auto& persist : out_.persists) {
      writes.push_back({Table::kMeta, persist.key, std::make_shared<const std::string>(persist.value)});
    }
    blocked_ = !node_.store().Commit({}, writes, Durability::kDisk).ok();
    if (blocked_) return false;
  }
  MembershipOutbox out = std::exchange(out_, {});
  Carry(out);
  return true;
}

void SimControl::Carry(MembershipOutbox& out) {
  for (const std::string& sentence : out.log) world_.Trace(node_.name(), [&] { return sentence; });
  if (out.new_layouts) node_.Push(NewLayouts{*out.new_layouts});
  for (const auto& send : out.sends) host_.Told(node_, send.to_address, send.message);
  for (const auto& answer : out.answers) {
    const auto waiting = waiting_.find(answer.ticket);
    if (waiting == waiting_.end()) continue;
    const Done done = std::move(waiting->second);
    waiting_.erase(waiting);
    done(answer.status);
  }
  if (!out.removed.empty()) host_.Removed(node_);
}

}  // namespace gyre::sim
