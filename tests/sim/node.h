// One node of a simulated cluster: a real lane, core and store, on a simulated clock, network and disk.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/lane/lane.h"
#include "storage/memory_engine.h"
#include "storage/store.h"
#include "tests/sim/weather.h"
#include "tests/sim/world.h"

namespace gyre::sim {

class SimNode final : private Clock, private Network, private Disk {
 public:
  // What the rest of the cluster does for a node, and what it looks at.
  class Host {
   public:
    virtual ~Host() = default;
    virtual void Sent(SimNode& from, NodeId to, LayoutMark layout, std::vector<Message> batch) = 0;
    virtual void Replied(SimNode& from, std::vector<Outbox::Reply> replies) = 0;
    virtual void LayoutWanted(SimNode& node, NodeId from) = 0;
    // This node made or passed on this record.
    virtual void RecordSeen(SimNode& node, const std::string& row_key, const RecordBytes& record) = 0;
    virtual void RowDurable(SimNode& node, const std::string& row_key, const RecordBytes& before,
                            const RecordBytes& after) = 0;
    virtual void TurnEnded(SimNode& node) = 0;
  };

  SimNode(World& world, Host& host, const Weather& weather, NodeId id, int number);

  // Instead of what chance gave it; limits from the next start on.
  void SetLimits(const NodeLimits& limits) { limits_ = limits; }
  // How long a batch takes to become durable, at most, once this node is healed.
  void SetCommitMax(Micros most) { commit_max_healed_ = most; }
  // Its wall clock is right, until it jumps.
  void SetExactClock() { wall_offset_ms_ = drift_ppm_ = 0; }
  // A new life, on what the last one left on disk.
  void Start(Layouts layouts);
  void Crash();
  // Crashes, and what was on the disk is gone.
  void LoseDisk();
  void PauseUntil(Micros when);
  void JumpWallClock(int64_t ms) { wall_offset_ms_ += ms; }
  void SetDiskFull(bool full);
  // From now on the disk works.
  void Heal();
  void Push(Input input);

  NodeId id() const { return id_; }
  const std::string& name() const { return name_; }
  bool alive() const { return lane_ != nullptr; }
  bool paused() const { return world_.now() < paused_until_; }
  Micros paused_until() const { return paused_until_; }
  Now Time() { return Read(); }
  Micros Steady() const { return world_.now() + steady_offset_; }
  uint64_t life() const { return life_; }
  const Lane& lane() const { return *lane_; }
  const NodeLimits& limits() const { return limits_; }
  Store& store() { return *store_; }
  MemoryEngine& engine() { return engine_; }
  // What a loss of power at this moment would leave; nullptr: no row.
  RecordBytes Durable(const std::string& row_key);

 private:
  Now Read() override;
  void Send(NodeId to, LayoutMark layout, std::vector<Message> batch) override;
  void Reply(std::vector<Outbox::Reply> replies) override { host_.Replied(*this, std::move(replies)); }
  void WantLayout(NodeId from) override { host_.LayoutWanted(*this, from); }
  std::vector<absl::StatusOr<RecordBytes>> ReadRows(std::span<const std::string> row_keys) override;
  peer::FetchPageReply ReadPage(const peer::FetchPage& page) override;
  void ReadSums(SumRequest request) override;
  void Commit(Batch batch) override;

  void OpenStore();
  void EndCommit();
  absl::Status Write(const Batch& batch);
  void WakeAt(Micros when);
  void Turn();

  World& world_;
  Host& host_;
  const Weather& weather_;
  const NodeId id_;
  const std::string name_;
  NodeLimits limits_;
  MemoryEngine engine_;
  std::unique_ptr<Store> store_;
  LaneStats stats_;
  std::unique_ptr<Lane> lane_;
  uint64_t life_ = 0;
  uint64_t stores_ = 0;  // that were lost
  bool healed_ = false;
  bool disk_full_ = false;
  Micros steady_offset_;
  int64_t wall_offset_ms_ = 0;
  int64_t drift_ppm_ = 0;
  Micros commit_max_;
  Micros commit_max_healed_ = Millis(2);
  Micros paused_until_;
  std::optional<Micros> wake_;
  std::vector<Input> inbox_;
  std::optional<Batch> committing_;
};

}  // namespace gyre::sim
