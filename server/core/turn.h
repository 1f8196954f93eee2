// What every part of a node is handed with each input: the time, the layout, who can be reached, and the
// outbox.
#pragma once

#include <absl/container/flat_hash_set.h>
#include <memory>

#include "server/core/message.h"

namespace gyre {

struct Turn {
  Now now;
  NodeId self;
  const Layouts& layouts;
  const absl::flat_hash_set<NodeId>& up;  // nodes with a live link, and this one
  Outbox& out;

  // The newest layout; nullptr before the cluster has formed.
  const std::shared_ptr<const View>& view() const { return layouts.view; }
  // By which rows are read and compared.
  const std::shared_ptr<const View>& reads() const { return layouts.reads(); }
  bool Up(NodeId node) const { return up.contains(node); }
  void Send(NodeId to, OpId op, auto body) const { out.sends.push_back({to, {op, std::move(body)}}); }
};

// Limits that a node enforces at clients' calls, never at merges.
struct NodeLimits {
  size_t value_bytes = 1 << 20;
  size_t siblings = 32;
  size_t record_bytes = 4 << 20;
  size_t calls_in_flight = 16384;
  size_t row_cache_bytes = 64 << 20;
  size_t hint_bytes =
      256 << 20;  // held for others; beyond, new hints are refused and anti-entropy does their work
  uint64_t drift_ms = 500;
};

}  // namespace gyre
