// What the threads of a node share about the cluster: the active layouts, how far the members are with the
// newest, and the nodes that were heard of. Snapshots.
#pragma once

#include <absl/synchronization/mutex.h>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/core/layouts.h"
#include "server/core/membership_messages.h"
#include "server/core/time.h"

namespace gyre {

// Thread-safe. Written by the control loop alone.
class ClusterState {
 public:
  using Known = std::map<NodeId, NodeInfoValue>;
  using Heard = std::map<NodeId, Micros>;  // when a node was last heard of in this life, by the steady clock

  // nullptr before the cluster has formed.
  std::shared_ptr<const View> view() const {
    absl::MutexLock lock(&mutex_);
    return layouts_.view;
  }
  Layouts layouts() const {
    absl::MutexLock lock(&mutex_);
    return layouts_;
  }
  // While the newest layout moves data, and until the next one: what is known of the members' steps. Sorted.
  std::vector<control::MemberStep> steps() const {
    absl::MutexLock lock(&mutex_);
    return steps_;
  }
  std::shared_ptr<const Known> known() const {
    absl::MutexLock lock(&mutex_);
    return known_;
  }
  // nullopt: not in this life.
  std::optional<Micros> heard(NodeId node) const {
    absl::MutexLock lock(&mutex_);
    const auto found = heard_.find(node);
    if (found == heard_.end()) return std::nullopt;
    return found->second;
  }
  void SetHeard(Heard heard) {
    absl::MutexLock lock(&mutex_);
    heard_ = std::move(heard);
  }
  void SetLayouts(Layouts layouts) {
    absl::MutexLock lock(&mutex_);
    layouts_ = std::move(layouts);
  }
  void SetSteps(std::vector<control::MemberStep> steps) {
    absl::MutexLock lock(&mutex_);
    steps_ = std::move(steps);
  }
  void SetKnown(Known known) {
    auto next = std::make_shared<const Known>(std::move(known));
    absl::MutexLock lock(&mutex_);
    known_ = std::move(next);
  }

 private:
  mutable absl::Mutex mutex_;
  Layouts layouts_ ABSL_GUARDED_BY(mutex_);
  std::vector<control::MemberStep> steps_ ABSL_GUARDED_BY(mutex_);
  Heard heard_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Known> known_ ABSL_GUARDED_BY(mutex_) = std::make_shared<const Known>();
};

}  // namespace gyre
