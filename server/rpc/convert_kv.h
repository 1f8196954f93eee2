// Between the public protocol and the core's calls and results: field by field, no decisions.
#pragma once

#include <absl/status/statusor.h>
#include <optional>

#include "proto/kv.grpc.pb.h"
#include "server/core/acks.h"
#include "server/core/call.h"

namespace gyre {

// These take the bytes out of `request`. INVALID_ARGUMENT names the field that no call can have.
absl::StatusOr<Call> ToCall(v1::PutRequest&& request);
absl::StatusOr<Call> ToCall(v1::GetRequest&& request);
absl::StatusOr<Call> ToCall(v1::DeleteRequest&& request);
absl::StatusOr<Call> ToCall(v1::ScanRequest&& request);
absl::StatusOr<Call> ToCall(v1::SessionRequest&& request);

// These take the bytes out of `call`. Only writes are forwarded.
void FromCall(PutCall&& call, v1::PutRequest& request);
void FromCall(DeleteCall&& call, v1::DeleteRequest& request);

void FromResult(WriteResult&& result, uint64_t layout_epoch, v1::PutReply& reply);
void FromResult(WriteResult&& result, uint64_t layout_epoch, v1::DeleteReply& reply);
void FromResult(GetResult&& result, uint64_t layout_epoch, v1::GetReply& reply);
void FromResult(ScanResult&& result, uint64_t layout_epoch, v1::ScanReply& reply);
void FromAcks(const Acks& acks, v1::Acknowledgements& wire);
// Into a session's reply, all but its id.
void FromResult(CallResult&& result, v1::SessionReply& reply);
// From the reply to a forwarded write.
CallResult ToResult(v1::SessionReply&& reply);

absl::StatusOr<std::optional<ReplicaCount>> ToReplicaCount(const char* field, bool set,
                                                           const v1::Replicas& replicas);
void FromReplicaCount(const ReplicaCount& count, v1::Replicas& replicas);

}  // namespace gyre
