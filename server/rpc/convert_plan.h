// Between plans on the wire and their values; nodes are found by the names that operators give them.
#pragma once

#include <absl/status/statusor.h>

#include "proto/admin.grpc.pb.h"
#include "server/core/plan.h"
#include "server/lane/cluster_state.h"

namespace gyre {

// The members of `view` and the nodes of `known` may be named by the beginning of their ids. Newcomers have
// the zone and weight that they say of themselves. INVALID_ARGUMENT: no node or more than one has such an id,
// or one thing is said twice.
absl::StatusOr<MemberChanges> ToMemberChanges(const View& view, const ClusterState::Known& known,
                                              const v1::MemberChanges& from);
void FromMemberChanges(const MemberChanges& from, v1::MemberChanges& to);

void FromPlan(const Plan& from, v1::PlanReply& to);

}  // namespace gyre
