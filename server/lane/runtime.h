// The world as a lane sees it. Real: server/lane's threads and server/rpc. Simulated: tests/sim.
#pragma once

#include <absl/status/statusor.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/core/message.h"
#include "server/core/time.h"
#include "server/lane/lane_stats.h"

namespace gyre {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Now Read() = 0;  // its steady part never runs backwards
};

// Best effort, never blocks.
class Network {
 public:
  virtual ~Network() = default;
  // May be lost, late, overtaken, and all but a Forward doubled. `layout`: what the sender works by.
  virtual void Send(NodeId to, LayoutMark layout, std::vector<Message> batch) = 0;
  virtual void Reply(std::vector<Outbox::Reply> replies) = 0;
  // This peer knows more of the layouts: somebody should ask it.
  virtual void WantLayout(NodeId from) = 0;
};

// The rows of this node.
class Disk {
 public:
  virtual ~Disk() = default;
  // As committed, in the order of `row_keys`; nullptr for a row that is not there.
  virtual std::vector<absl::StatusOr<RecordBytes>> ReadRows(std::span<const std::string> row_keys) = 0;
  virtual peer::FetchPageReply ReadPage(const peer::FetchPage& page) = 0;
  // Answered by a SumsRead input of the lane, in one order with the batches.
  virtual void ReadSums(SumRequest request) = 0;

  struct Batch {
    std::vector<RowCommit> rows;
    std::optional<ActorState> actor;
    std::optional<CutMarks> cuts;
    std::optional<std::string> moves;  // storage/format/meta_codec.h, kMetaMoves
    std::vector<std::string> stale;    // collect keys to be erased
    bool filled = false;  // this node is filling no more (storage/format/meta_codec.h, kMetaFilling)
    bool empty() const { return rows.empty() && !actor && !cuts && !moves && stale.empty() && !filled; }
  };
  // Starts to make a batch durable. It ends, well or badly, as a Committed input of the lane. One at a time.
  virtual void Commit(Batch batch) = 0;
};

struct Runtime {
  Clock& clock;
  Network& network;
  Disk& disk;
  LaneStats& stats;
};

}  // namespace gyre
