// The ranges that the same replicas hold, computed once per layout and number of replicas.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "ring/replica_ranges.h"
#include "server/core/layout.h"

namespace gyre {

class ReplicaRangesCache {
 public:
  // Valid until the next call with another view.
  const std::vector<ReplicaRange>& Of(const std::shared_ptr<const View>& view, int replicas) {
    if (view_ != view) {
      view_ = view;
      ranges_.clear();
    }
    std::vector<ReplicaRange>& ranges = ranges_[replicas];
    if (ranges.empty()) ranges = ReplicaRangesOf(view->ring, static_cast<size_t>(replicas));
    return ranges;
  }

 private:
  std::shared_ptr<const View> view_;
  std::map<int, std::vector<ReplicaRange>> ranges_;  // by number of replicas
};

}  // namespace gyre
