// A lane: the one loop that turns a node's obligations into I/O.
//
// A turn drains everything that waits, steps the core, starts one disk batch and sends one batch of messages
// per peer. While the disk syncs, the next batch grows: that is the group commit. NOT thread-safe: one thread
// drives it.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <optional>
#include <vector>

#include "server/core/node.h"
#include "server/lane/runtime.h"

namespace gyre {

class Lane {
 public:
  // A disk batch ends at about this many bytes; what is left follows in the next.
  static constexpr size_t kBatchBytesMax = 4 << 20;

  Lane(Node::Config config, ActorClock clock, Runtime runtime)
      : self_(config.self), node_(std::move(config), std::move(clock)), runtime_(runtime) {}

  // Takes all of `inputs`, leaves it empty.
  void Turn(std::vector<Input>& inputs);

  // When the next turn is due even without inputs.
  std::optional<Micros> next_deadline() const { return node_.next_deadline(); }
  // Nothing is under way: no call, no commit.
  bool idle() const { return node_.calls_in_flight() == 0 && !committing_ && waiting_.empty(); }
  const Node& node() const { return node_; }

 private:
  void Settle(Now now, std::vector<Input>& inputs);
  void Rebase(const std::vector<RowCommit>& failed, std::vector<Input>& to_self);
  void Read(Now now);
  void Collect(std::vector<Input>& to_self);
  void StartCommit();
  void Publish();
  void PublishMoves();
  void SendAll();

  NodeId self_;
  Node node_;
  Runtime runtime_;
  Outbox out_;
  std::vector<Input> to_self_;
  absl::flat_hash_map<NodeId, std::vector<Message>> to_peers_;
  std::vector<NodeId> peers_;  // keys of to_peers_ with messages, in the order they came
  std::vector<Outbox::Reply> replies_;
  Disk::Batch waiting_;  // for the disk
  bool committing_ = false;
  NodeId layout_wanted_from_;
  LaneStats::Hints hints_;                    // as last published
  std::vector<StableCut::Blocker> blockers_;  // the same
  bool moves_published_ = false;
};

}  // namespace gyre
