// The control thread: drives membership.
#include "server/lane/control_thread.h"

#include <algorithm>
#include <utility>

#include "server/lane/thread_name.h"
#include "storage/format/meta_codec.h"

namespace gyre {
namespace {

constexpr absl::Duration kPersistAgain = absl::Milliseconds(200);

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
    state_.SetView(membership_.view());
    hooks_.new_view(membership_.view());
  }
  thread_ = std::thread([this] { Loop(); });
}

void ControlThread::Change(std::variant<LayoutChange::Create, LayoutChange::Set, LayoutChange::Drop> what,
                           Micros timeout, Done done) {
  LayoutChange change;
  std::visit([&](auto& w) { change.what = std::move(w); }, what);
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
    membership_.Tick(clock_.Read(), out_);
    Carry(out_);
    state_.SetKnown(membership_.known());
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
  }
  // LayoutWantedSomewhere: the tick that follows every item says hello when it is due, which is soon.
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
  if (out.new_view != nullptr) {
    state_.SetView(out.new_view);
    hooks_.new_view(out.new_view);
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
