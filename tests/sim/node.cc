// One node of a simulated cluster.
#include "tests/sim/node.h"

#include <cassert>
#include <utility>

#include "server/core/describe.h"
#include "server/core/membership.h"
#include "server/lane/answers.h"
#include "storage/format/meta_codec.h"
#include "storage/format/row_key.h"

namespace gyre::sim {
namespace {

constexpr int64_t kYear2023Ms = 1'700'000'000'000;
constexpr Micros kForever = {INT64_MAX / 2};

}  // namespace

SimNode::SimNode(World& world, Host& host, const Weather& weather, NodeId id, int number)
    : world_(world),
      host_(host),
      weather_(weather),
      id_(id),
      name_(std::string("n").append(std::to_string(number))) {
  Random& random = world_.random();
  wall_offset_ms_ = static_cast<int64_t>(random.Below(100)) - 50;
  drift_ppm_ = static_cast<int64_t>(random.Below(400)) - 200;
  constexpr size_t kRowCacheBytes[] = {0, 2000, 16 << 20};
  commit_max_ = random.Chance(0.3) ? Millis(300) : weather_.commit_max;  // some disks are slow
  limits_.row_cache_bytes = kRowCacheBytes[random.Below(3)];
  if (random.Chance(0.2)) limits_.hint_bytes = random.Below(400);
}

void SimNode::Start(Layouts layouts) {
  assert(!alive());
  ++life_;
  steady_offset_ = Micros{static_cast<int64_t>(world_.random().Below(1'000'000'000))};
  OpenStore();
  std::optional<ActorState> actor;
  if (absl::StatusOr<std::string> bytes = engine_.Get(Table::kMeta, kMetaActor); bytes.ok()) {
    absl::StatusOr<ActorState> state = DecodeActorState(*bytes);
    assert(state.ok());
    actor = *state;
  }
  CutMarks cuts;
  if (absl::StatusOr<std::string> bytes = engine_.Get(Table::kMeta, kMetaStableCut); bytes.ok()) {
    absl::StatusOr<CutMarks> marks = DecodeCutMarks(*bytes);
    assert(marks.ok());
    cuts = *marks;
  }
  MoveState moves;
  if (absl::StatusOr<std::string> bytes = engine_.Get(Table::kMeta, kMetaMoves); bytes.ok()) {
    absl::StatusOr<MoveState> state = DecodeMoveState(*bytes);
    assert(state.ok());
    moves = *std::move(state);
  }
  const bool filling = engine_.Get(Table::kMeta, kMetaFilling).ok();
  lane_ = std::make_unique<Lane>(Node::Config{.self = id_,
                                              .limits = limits_,
                                              .first_op = life_ << 40,
                                              .filling = filling,
                                              .cuts = cuts,
                                              .moves = moves},
                                 ActorClock(id_.value, actor, Read().wall_ms),
                                 Runtime{*this, *this, *this, stats_});
  world_.Trace(name_, [&] { return "starts life " + std::to_string(life_); });
  if (layouts.view != nullptr) Push(NewLayouts{std::move(layouts)});
}

void SimNode::OpenStore() {
  store_ = std::make_unique<Store>(engine_);
  while (store_->RecountSome(1'000'000)) {
  }
}

void SimNode::Crash() {
  assert(alive());
  world_.Add(Count::kCrashes);
  // What was on its way to the disk may have arrived, or not.
  if (committing_ && world_.random().Chance(0.5)) (void)Write(*committing_);
  committing_.reset();
  inbox_.clear();
  wake_.reset();
  paused_until_ = {};
  lane_.reset();
  store_.reset();
  engine_.SetDiskFull(false);
  disk_full_ = false;
  engine_.Crash(MemoryEngine::CrashKind::kPower);
  world_.Trace(name_, [] { return "crashes"; });
}

void SimNode::LoseDisk() {
  Crash();
  world_.Add(Count::kDisksLost);
  world_.Trace(name_, [] { return "has lost its disk"; });
  for (const Table table : {Table::kRows, Table::kHints, Table::kMeta, Table::kCollect}) {
    const absl::Status erased = engine_.EraseRange(table, {});
    assert(erased.ok());
    (void)erased;
  }
  const ActorState actor = {.incarnation = static_cast<uint32_t>(++stores_ << 20), .clean = true};
  const auto [votes, forgotten] = Membership::VotesForgotten();
  const EngineWrite claim[] = {
      {Table::kMeta, std::string(kMetaActor), std::make_shared<const std::string>(EncodeActorState(actor))},
      {Table::kMeta, std::string(kMetaFilling), std::make_shared<const std::string>()},
      {Table::kMeta, votes, std::make_shared<const std::string>(forgotten)}};
  const absl::Status claimed = engine_.Apply(claim, Durability::kDisk, "");
  assert(claimed.ok());
  (void)claimed;
}

void SimNode::PauseUntil(Micros when) {
  world_.Add(Count::kPauses);
  world_.Trace(name_,
               [&] { return "pauses for " + std::to_string((when - world_.now()).value / 1000) + " ms"; });
  paused_until_ = std::max(paused_until_, when);
}

void SimNode::SetDiskFull(bool full) {
  if (full) world_.Add(Count::kDiskFull);
  world_.Trace(name_, [&] { return full ? "disk is full" : "disk has room again"; });
  disk_full_ = full;
  engine_.SetDiskFull(full);
  Push(StoreHealth{full ? absl::ResourceExhaustedError("the disk is full") : absl::OkStatus()});
}

void SimNode::Heal() {
  healed_ = true;
  paused_until_ = {};
  if (alive() && disk_full_) SetDiskFull(false);
  if (alive()) WakeAt(world_.now());
}

void SimNode::Push(Input input) {
  if (!alive()) return;
  inbox_.push_back(std::move(input));
  WakeAt(world_.now() + world_.random().Between({20}, {200}));
}

void SimNode::WakeAt(Micros when) {
  if (wake_ && *wake_ <= when) return;
  wake_ = when;
  world_.At(when, [this, when, life = life_] {
    if (life == life_ && wake_ == when) Turn();
  });
}

void SimNode::Turn() {
  wake_.reset();
  if (paused()) return WakeAt(paused_until_);
  world_.Add(Count::kTurns);
  for (const Input& input : inbox_) {
    world_.Trace(name_, [&] { return "<- " + Describe(input); });
  }
  std::vector<Input> inputs = std::exchange(inbox_, {});
  lane_->Turn(inputs);
  host_.TurnEnded(*this);
  if (const std::optional<Micros> next = lane_->next_deadline()) {
    if (*next < kForever) WakeAt(std::max(*next - steady_offset_, world_.now() + Micros{1}));
  }
}

Now SimNode::Read() {
  const int64_t steady_ms = world_.now().value / 1000;
  const int64_t wall = kYear2023Ms + steady_ms + steady_ms * drift_ppm_ / 1'000'000 + wall_offset_ms_;
  return {.steady = Steady(), .wall_ms = static_cast<uint64_t>(wall)};
}

void SimNode::Send(NodeId to, LayoutMark layout, std::vector<Message> batch) {
  for (const Message& message : batch) {
    world_.Trace(name_, [&] { return "-> " + ToString(to).substr(12) + " " + Describe(message); });
    if (const auto* store = std::get_if<peer::StoreRow>(&message.body)) {
      host_.RecordSeen(*this, store->row_key, store->record);
    }
  }
  host_.Sent(*this, to, layout, std::move(batch));
}

std::vector<absl::StatusOr<RecordBytes>> SimNode::ReadRows(std::span<const std::string> row_keys) {
  std::vector<absl::StatusOr<RecordBytes>> rows = store_->ReadRows(row_keys);
  if (healed_) return rows;
  for (absl::StatusOr<RecordBytes>& row : rows) {
    if (!world_.random().Chance(weather_.read_fails)) continue;
    world_.Add(Count::kReadsFailed);
    row = absl::DataLossError("a block of the file fails its checksum");
  }
  return rows;
}

peer::FetchPageReply SimNode::ReadPage(const peer::FetchPage& page) {
  if (!healed_ && world_.random().Chance(weather_.read_fails)) {
    world_.Add(Count::kReadsFailed);
    return {.code = absl::StatusCode::kDataLoss};
  }
  return PageOf(engine_, page);
}

// Between two batches, as the real commit thread does.
void SimNode::ReadSums(SumRequest request) {
  world_.In({100}, [this, life = life_, request = std::move(request)] {
    if (life != life_ || !alive()) return;
    if (healed_) store_->RecountSome(1'000'000);
    Push(SumsOf(*store_, request));
  });
}

void SimNode::Commit(Batch batch) {
  assert(!committing_);
  for (const RowCommit& row : batch.rows) {
    // Of a hint, what a fallback holds: it may be erased, and a replica's is empty.
    // A row may be collected.
    if (row.after == nullptr || IsEmptyRecord(row.after)) continue;
    host_.RecordSeen(*this, std::string(HintedRowKey(row.row_key)), row.after);
  }
  committing_ = std::move(batch);
  const Micros delay = world_.random().Skewed({100}, healed_ ? commit_max_healed_ : commit_max_);
  world_.In(delay, [this, life = life_] {
    if (life == life_ && committing_) EndCommit();
  });
}

void SimNode::EndCommit() {
  Batch batch = *std::exchange(committing_, std::nullopt);
  if (!healed_ && world_.random().Chance(weather_.commit_fails)) {
    world_.Add(Count::kCommitsFailed);
    const bool lurks = world_.random().Chance(0.5);
    engine_.FailNextWrite(absl::UnavailableError("input/output error"),
                          lurks ? MemoryEngine::FailedBatch::kInLog : MemoryEngine::FailedBatch::kGone);
  }
  absl::Status status = Write(batch);
  if (world_.random().Chance(0.1)) store_->RecountSome(1'000'000);
  Push(Committed{std::move(status), std::move(batch.rows), batch.actor, batch.cuts, batch.moves.has_value()});
}

absl::Status SimNode::Write(const Batch& batch) {
  std::vector<RowWrite> rows;
  for (const RowCommit& row : batch.rows) rows.push_back({row.row_key, row.before, row.after});
  std::vector<RecordBytes> before;
  for (const RowWrite& row : rows) before.push_back(Durable(row.row_key));
  absl::Status status = store_->Commit(rows, FactsOf(batch), Durability::kDisk);
  if (status.ok()) {
    for (size_t i = 0; i < rows.size(); ++i)
      if (!IsHintKey(rows[i].row_key)) host_.RowDurable(*this, rows[i].row_key, before[i], rows[i].after);
  }
  return status;
}

RecordBytes SimNode::Durable(const std::string& row_key) {
  absl::StatusOr<std::string> bytes = engine_.Get(IsHintKey(row_key) ? Table::kHints : Table::kRows, row_key);
  return bytes.ok() ? std::make_shared<const std::string>(*std::move(bytes)) : nullptr;
}

}  // namespace gyre::sim
