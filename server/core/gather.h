// Gather: reads one row from its replicas until enough have answered, and merges what they said.
#pragma once

#include <absl/status/statusor.h>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "server/core/fanout.h"

namespace gyre {

// A value of a coordinator's operation. The coordinator calls AskNext when an answer is late (a hedge).
class Gather {
 public:
  Gather() = default;
  // REQUIRES: 1 <= need <= replicas.size().
  Gather(const ReplicaSet& replicas, int need, std::string row_key)
      : fanout_(replicas, need), row_key_(std::move(row_key)) {}

  void Start(const Turn& turn, OpId op);
  void AskNext(const Turn& turn, OpId op);
  // An answer; one that failed is made up for by the next replica. Answers of nodes that were not asked are
  // ignored.
  Verdict Answer(const Turn& turn, OpId op, NodeId from, const peer::FetchReply& reply);
  Verdict Lost(const Turn& turn, OpId op, NodeId node);

  const Fanout& fanout() const { return fanout_; }
  const std::string& row_key() const { return row_key_; }

  // The merge of all good answers so far; without a record when none has a row. DATA_LOSS when one cannot be
  // decoded.
  absl::StatusOr<CutRecord> Merged(ConflictRule rule) const;
  // The primaries that answered with something else than `merged`: read repair owes it to them.
  std::vector<NodeId> Stale(const RecordBytes& merged) const;

 private:
  auto Ask(const Turn& turn, OpId op) const;

  Fanout fanout_;
  std::string row_key_;
  uint8_t good_ = 0;  // bit per slot: records_ holds its answer
  std::array<CutRecord, Quorum::kReplicasMax> records_;
};

}  // namespace gyre
