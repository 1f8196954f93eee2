// ScanMerge: one page of one range of a scan, read from several replicas and merged row by row.
#pragma once

#include <absl/status/statusor.h>
#include <string>
#include <utility>
#include <vector>

#include "server/core/fanout.h"

namespace gyre {

// A value of a coordinator's operation, which calls AskNext when an answer is late. Complete up to where the
// slowest of the replicas that answered got: a page never skips a row that a quorum knows.
class ScanMerge {
 public:
  ScanMerge() = default;
  // REQUIRES: 1 <= need <= replicas.size(); page.after < page.end.
  ScanMerge(const ReplicaSet& replicas, int need, peer::FetchPage page)
      : fanout_(replicas, need), page_(std::move(page)) {}

  void Start(const Turn& turn, OpId op);
  void AskNext(const Turn& turn, OpId op);
  Verdict Answer(const Turn& turn, OpId op, NodeId from, peer::FetchPageReply reply);
  Verdict Lost(const Turn& turn, OpId op, NodeId node);
  const Fanout& fanout() const { return fanout_; }

  struct Merged {
    std::vector<Row> rows;   // ordered by row key
    std::string covered_to;  // row key: everything up to it (inclusive) is in `rows`; page.end when complete
  };
  // Takes the answers out. REQUIRES: fanout().verdict() == kMet. DATA_LOSS when a record cannot be decoded.
  absl::StatusOr<Merged> Take(ConflictRule rule);

 private:
  auto Ask(const Turn& turn, OpId op) const;

  Fanout fanout_;
  peer::FetchPage page_;
  std::vector<peer::FetchPageReply> pages_;
};

}  // namespace gyre
