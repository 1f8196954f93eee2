// The control thread: drives membership.
#include "server/lane/control_thread.h"

#include <algorithm>
#include <utility>

#include "server/lane/thread_name.h"
#include "storage/format/meta_codec.h"

namespace gyre {
namespace {

constexpr absl::Duration kPersistAgain = absl::Milliseconds(200);

ClusterState::Heard HeardOf(const Membership& membership) {
  ClusterState::Heard heard;
  for (const auto& [node, info] : membership.known()) {
    if (const std::optional<Micros> at = membership.last_heard(node)) heard[node] = *at;
  }
  return heard;
}

}  // namespace

ControlThread::ControlThread(Membership membership, Clock& clock, CommitThread& disk, ClusterState& state,
                             Hooks hooks)
    : membership_(std::move(membership)),
      clock_(clock),
      disk_(disk),
      state_(state),
      hooks_(std::move(hooks)) {
  state_.SetKnown(membership_.known());
  if (membership_.view() != nullptr) {
    state_.SetLayouts(membership_.layouts());
    state_.SetSteps(membership_.steps());
    hooks_.new_layouts(membership_.layouts());
  }
  thread_ = std::thread([this] { Loop(); });
}

void ControlThread::Change(LayoutChange::What what, Micros timeout, Done done) {
  LayoutChange change;
  change.what = std::move(what);
  inbox_.Push(ChangeWanted{std::move(change), timeout, std::move(done)});
}

void ControlThread::Stop() {
  stopping_.Set();
  inbox_.Close();
  if (thread_.joinable()) thread_.join();
}

void ControlThread::Loop() {
  NameThisThread("control");
  std::vector<Item> items;
  bool open = true;
  while (open) {
    const Micros wait = membership_.next_deadline() - clock_.Read().steady;
    open = inbox_.Drain(absl::Now() + absl::Microseconds(std::max<int64_t>(wait.value, 0)), items);
    for (Item& item : items) {
      Step(clock_.Read(), std::move(item));
      Carry(out_);
    }
    items.clear();
    membership_.SetFacts(hooks_.facts());
    membership_.SetLaneSteps(hooks_.steps());
    membership_.Tick(clock_.Read(), out_);
    Carry(out_);
    state_.SetKnown(membership_.known());
    state_.SetSteps(membership_.steps());
    state_.SetHeard(HeardOf(membership_));
    hooks_.known(membership_.known(), membership_.detector().suspects());
  }
  for (auto& [ticket, done] : waiting_)
    done(absl::UnknownError("outcome unknown: this node is shutting down"));
}

void ControlThread::Step(Now now, Item item) {
  if (const auto* message = std::get_if<control::Message>(&item)) {
    membership_.Step(now, *message, out_);
  } else if (auto* wanted = std::get_if<ChangeWanted>(&item)) {
    wanted->change.ticket = next_ticket_++;
    wanted->change.deadline = now.steady + wanted->timeout;
    waiting_[wanted->change.ticket] = std::move(wanted->done);
    membership_.Change(now, std::move(wanted->change), out_);
  } else {
    membership_.WantLayout(now, std::get<LayoutWantedFrom>(item).peer, out_);
  }
}

// A decision that is not durable is not told: while the disk refuses, membership stands still.
void ControlThread::Persist(const std::vector<MembershipOutbox::Persist>& persists) {
  if (persists.empty()) return;
  std::vector<EngineWrite> writes;
  for (const auto& persist : persists) {
    writes.push_back({Table::kMeta, persist.key, std::make_shared<const std::string>(persist.value)});
  }
  bool said = false;
  while (!stopping_) {
    absl::Status status;
    const auto commit = [&](Store& store) { status = store.Commit({}, writes, Durability::kDisk); };
    if (disk_.Run(commit).ok() && status.ok()) return;
    if (!std::exchange(said, true)) {
      hooks_.log("a decision about membership cannot be made durable and is tried again: " +
                 std::string(status.message()));
    }
    stopping_.WaitFor(kPersistAgain);
  }
}

void ControlThread::Carry(MembershipOutbox& out) {
  Persist(out.persists);
  if (stopping_) return;
  for (const std::string& sentence : out.log) hooks_.log(sentence);
  if (out.new_layouts) {
    state_.SetLayouts(*out.new_layouts);
    hooks_.new_layouts(*out.new_layouts);
  }
  for (const auto& send : out.sends) hooks_.tell(send.to_address, send.message);
  for (auto& answer : out.answers) {
    const auto waiting = waiting_.find(answer.ticket);
    if (waiting == waiting_.end()) continue;
    if (answer.status.ok()) {
      waiting->second(std::move(answer.view));
    } else {
      waiting->second(std::move(answer.status));
    }
    waiting_.erase(waiting);
  }
  if (!out.removed.empty()) hooks_.removed(out.removed);
  out = {};
}

absl::StatusOr<std::map<std::string, std::string>> ControlThread::Load(Engine& engine) {
  std::map<std::string, std::string> persisted;
  const std::string begin(kMetaMembership);
  std::string end = begin;
  ++end.back();
  const absl::Status status =
      engine.Scan(Table::kMeta, {begin, end}, [&](std::string_view key, std::string_view value) {
        persisted[std::string(key)] = std::string(value);
        return true;
      });
  if (!status.ok()) return status;
  return persisted;
}

}  // namespace gyre
