// Sentences and sums that the coordinator's files share.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <optional>
#include <string>

#include "server/core/layout.h"
#include "server/core/quorum.h"
#include "server/core/replica_set.h"
#include "server/core/turn.h"

namespace gyre {

// UNKNOWN: a write may have taken effect without its quorum.
absl::Status OutcomeUnknown(const std::string& why);
// What to say at the deadline of a write that `need` replicas must confirm: UNAVAILABLE if nothing was stored
// or sent yet, else UNKNOWN. These and the next say how many replicas answered, in words and as Acks.
absl::Status WriteTimedOut(const Quorum& quorum, int need);
// UNKNOWN: too many replicas failed after the write was sent.
absl::Status WriteLost(const Quorum& quorum);
absl::Status ReadTimedOut(const Quorum& quorum);
// UNAVAILABLE: no replica that answers has seen what the context of a read has.
absl::Status NotSeenYet();

// The number of replicas that must answer: what was asked for, else what the keyspace says. INVALID_ARGUMENT
// naming `field` when it can never be; UNAVAILABLE when the cluster has fewer nodes than that now.
// `replicas`: how many replicas the key has.
absl::StatusOr<int> NeededReplicas(const char* field, const std::optional<ReplicaCount>& asked,
                                   const ReplicaCount& usual, const KeyspaceSpec& keyspace, int replicas);

// Who answers for a key, and who must be told of it: the replicas by the layout that is read by, and by all
// that are active. Unless `strict`, for each that cannot be reached the next node of the preference list that
// can stands in, as far as there are such nodes (a sloppy quorum: DeCandia et al., "Dynamo", section 4.6).
ReplicaSet ReadersOf(const Turn& turn, const KeyspaceSpec& keyspace, Token token, bool strict);
ReplicaSet HoldersOf(const Turn& turn, const KeyspaceSpec& keyspace, Token token, bool strict);

// The keyspace as the layout has it that is read by: its n may be another there.
const KeyspaceSpec& AsRead(const Turn& turn, const KeyspaceSpec& keyspace);

// OK, or INVALID_ARGUMENT: a key must have 1 to kKeyBytesMax bytes.
absl::Status CheckKey(const std::string& key);
// The keyspace of a call, or INVALID_ARGUMENT. The empty name stands for "default".
absl::StatusOr<const KeyspaceSpec*> FindKeyspace(const View& view, const std::string& name);

// "2 of 3 replicas are needed but only 1 can be reached (down: …)"; of those that cannot, or did not answer.
std::string DescribeMissing(const Turn& turn, const ReplicaSet& replicas, Quorum::Group group);
std::string DescribeMissing(const Turn& turn, const ReplicaSet& replicas, int need);  // of all

}  // namespace gyre
