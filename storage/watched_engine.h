// An engine that tells of the damage that is met through it.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "storage/engine.h"

namespace gyre {

// Threads and errors: as Engine. `met` is called with each DATA_LOSS before it is returned, on the thread
// that met it. That of ReplayNotes is none: an old log is thrown away in time.
class WatchedEngine final : public Engine {
 public:
  WatchedEngine(std::unique_ptr<Engine> engine, std::function<void(const absl::Status&)> met)
      : engine_(std::move(engine)), met_(std::move(met)) {}

  absl::StatusOr<std::string> Get(Table table, std::string_view key) override {
    absl::StatusOr<std::string> value = engine_->Get(table, key);
    Look(value.status());
    return value;
  }
  std::vector<absl::StatusOr<std::string>> MultiGet(Table table, std::span<const std::string> keys) override {
    std::vector<absl::StatusOr<std::string>> values = engine_->MultiGet(table, keys);
    for (const absl::StatusOr<std::string>& value : values) Look(value.status());
    return values;
  }
  absl::Status Apply(std::span<const EngineWrite> writes, Durability durability,
                     std::string_view note) override {
    return Looked(engine_->Apply(writes, durability, note));
  }
  absl::Status Sync() override { return Looked(engine_->Sync()); }
  absl::Status Scan(Table table, const KeyRange& range,
                    absl::FunctionRef<bool(std::string_view key, std::string_view value)> visit) override {
    return Looked(engine_->Scan(table, range, visit));
  }
  absl::StatusOr<std::unique_ptr<EngineSnapshot>> Snapshot() override {
    auto snapshot = engine_->Snapshot();
    if (!snapshot.ok()) return snapshot.status();
    return std::make_unique<WatchedSnapshot>(*this, *std::move(snapshot));
  }
  absl::Status EraseRange(Table table, const KeyRange& range) override {
    return Looked(engine_->EraseRange(table, range));
  }
  uint64_t LastSequence() const override { return engine_->LastSequence(); }
  absl::Status ReplayNotes(uint64_t sequence, absl::FunctionRef<void(std::string_view note)> visit) override {
    return engine_->ReplayNotes(sequence, visit);
  }
  Size EstimateSize() override { return engine_->EstimateSize(); }
  absl::Status Resume() override { return Looked(engine_->Resume()); }

 private:
  class WatchedSnapshot final : public EngineSnapshot {
   public:
    WatchedSnapshot(const WatchedEngine& engine, std::unique_ptr<EngineSnapshot> snapshot)
        : engine_(engine), snapshot_(std::move(snapshot)) {}
    absl::StatusOr<std::string> Get(Table table, std::string_view key) override {
      absl::StatusOr<std::string> value = snapshot_->Get(table, key);
      engine_.Look(value.status());
      return value;
    }
    absl::Status Scan(Table table, const KeyRange& range,
                      absl::FunctionRef<bool(std::string_view key, std::string_view value)> visit) override {
      return engine_.Looked(snapshot_->Scan(table, range, visit));
    }

   private:
    const WatchedEngine& engine_;
    const std::unique_ptr<EngineSnapshot> snapshot_;
  };

  void Look(const absl::Status& status) const {
    if (absl::IsDataLoss(status)) met_(status);
  }
  absl::Status Looked(absl::Status status) const {
    Look(status);
    return status;
  }

  const std::unique_ptr<Engine> engine_;
  const std::function<void(const absl::Status&)> met_;
};

}  // namespace gyre
