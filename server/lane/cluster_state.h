// What the threads of a node share about the cluster: the newest view, and the nodes that were heard of.
// Snapshots.
#pragma once

#include <absl/synchronization/mutex.h>
#include <map>
#include <memory>
#include <utility>

#include "server/core/layout.h"
#include "server/core/membership_messages.h"

namespace gyre {

// Thread-safe. Written by the control loop alone.
class ClusterState {
 public:
  using Known = std::map<NodeId, NodeInfoValue>;

  // nullptr before the cluster has formed.
  std::shared_ptr<const View> view() const {
    absl::MutexLock lock(&mutex_);
    return view_;
  }
  std::shared_ptr<const Known> known() const {
    absl::MutexLock lock(&mutex_);
    return known_;
  }
  void SetView(std::shared_ptr<const View> view) {
    absl::MutexLock lock(&mutex_);
    view_ = std::move(view);
  }
  void SetKnown(Known known) {
    auto next = std::make_shared<const Known>(std::move(known));
    absl::MutexLock lock(&mutex_);
    known_ = std::move(next);
  }

 private:
  mutable absl::Mutex mutex_;
  std::shared_ptr<const View> view_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Known> known_ ABSL_GUARDED_BY(mutex_) = std::make_shared<const Known>();
};

}  // namespace gyre
