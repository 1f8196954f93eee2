// Between the public protocol and the core's calls and results.
#include "server/rpc/convert_kv.h"

#include <string>
#include <utility>

namespace gyre {
namespace {

uint64_t LoadBigEndian(const std::string& bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

void AppendBigEndian(uint64_t value, std::string& bytes) {
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
}

absl::StatusOr<WriteId> ToWriteId(const std::string& bytes) {
  if (bytes.empty()) return WriteId{};
  if (bytes.size() != 16) {
    return absl::InvalidArgumentError("write_id has " + std::to_string(bytes.size()) +
                                      " bytes; it must have 16 or none");
  }
  return WriteId{LoadBigEndian(bytes, 0), LoadBigEndian(bytes, 8)};
}

std::string FromWriteId(const WriteId& id) {
  std::string bytes;
  if (id.empty()) return bytes;
  AppendBigEndian(id.high, bytes);
  AppendBigEndian(id.low, bytes);
  return bytes;
}

template <typename Reply>
void FromWrite(WriteResult&& result, uint64_t layout_epoch, Reply& reply) {
  reply.set_context(std::move(result.context));
  reply.set_acks(static_cast<uint32_t>(result.acks));
  reply.set_fallbacks(static_cast<uint32_t>(result.fallbacks));
  reply.set_layout_epoch(layout_epoch);
}

template <typename Reply>
WriteResult ToWrite(Reply& reply, bool is_delete) {
  return {.context = std::move(*reply.mutable_context()),
          .acks = static_cast<int>(reply.acks()),
          .fallbacks = static_cast<int>(reply.fallbacks()),
          .is_delete = is_delete};
}

void FromValues(std::vector<ReadValue>&& values, google::protobuf::RepeatedPtrField<v1::Value>& out) {
  out.Reserve(static_cast<int>(values.size()));
  for (ReadValue& value : values) {
    v1::Value& to = *out.Add();
    to.set_value(std::move(value.value));
    to.set_dot(ToString(value.dot));
    to.set_expires_at_ms(value.expires_ms);
  }
}

void SetCount(const std::optional<ReplicaCount>& count, auto mutable_field) {
  if (count) FromReplicaCount(*count, *mutable_field());
}

}  // namespace

absl::StatusOr<std::optional<ReplicaCount>> ToReplicaCount(const char* field, bool set,
                                                           const v1::Replicas& replicas) {
  using How = ReplicaCount::How;
  if (!set) return std::nullopt;
  if (replicas.how_case() == v1::Replicas::kCount) return ReplicaCount{How::kCount, replicas.count()};
  if (replicas.how_case() == v1::Replicas::kName) {
    switch (replicas.name()) {
      case v1::Replicas::ONE:
        return ReplicaCount{How::kOne};
      case v1::Replicas::QUORUM:
        return ReplicaCount{How::kQuorum};
      case v1::Replicas::ALL:
        return ReplicaCount{How::kAll};
      default:
        break;
    }
  }
  return absl::InvalidArgumentError(std::string(field) +
                                    " names no number of replicas; give one, quorum, all or a count");
}

void FromReplicaCount(const ReplicaCount& count, v1::Replicas& replicas) {
  switch (count.how) {
    case ReplicaCount::How::kOne:
      return replicas.set_name(v1::Replicas::ONE);
    case ReplicaCount::How::kQuorum:
      return replicas.set_name(v1::Replicas::QUORUM);
    case ReplicaCount::How::kAll:
      return replicas.set_name(v1::Replicas::ALL);
    case ReplicaCount::How::kCount:
      return replicas.set_count(count.count);
  }
}

absl::StatusOr<Call> ToCall(v1::PutRequest&& request) {
  auto w = ToReplicaCount("w", request.has_w(), request.w());
  if (!w.ok()) return w.status();
  auto write_id = ToWriteId(request.write_id());
  if (!write_id.ok()) return write_id.status();
  PutCall call = {.keyspace = std::move(*request.mutable_keyspace()),
                  .key = std::move(*request.mutable_key()),
                  .value = std::move(*request.mutable_value()),
                  .w = *w,
                  .strict = request.strict(),
                  .write_id = *write_id,
                  .retry = request.retry()};
  if (request.has_context()) call.context = std::move(*request.mutable_context());
  if (request.has_ttl_ms()) call.ttl_ms = request.ttl_ms();
  if (request.has_expires_at_ms()) call.expires_ms = request.expires_at_ms();
  return call;
}

absl::StatusOr<Call> ToCall(v1::GetRequest&& request) {
  auto r = ToReplicaCount("r", request.has_r(), request.r());
  if (!r.ok()) return r.status();
  GetCall call = {.keyspace = std::move(*request.mutable_keyspace()),
                  .key = std::move(*request.mutable_key()),
                  .r = *r,
                  .strict = request.strict()};
  call.contexts.assign(request.contexts().begin(), request.contexts().end());
  return call;
}

absl::StatusOr<Call> ToCall(v1::DeleteRequest&& request) {
  auto w = ToReplicaCount("w", request.has_w(), request.w());
  if (!w.ok()) return w.status();
  DeleteCall call = {.keyspace = std::move(*request.mutable_keyspace()),
                     .key = std::move(*request.mutable_key()),
                     .w = *w,
                     .strict = request.strict()};
  if (request.has_context()) call.context = std::move(*request.mutable_context());
  return call;
}

absl::StatusOr<Call> ToCall(v1::ScanRequest&& request) {
  auto r = ToReplicaCount("r", request.has_r(), request.r());
  if (!r.ok()) return r.status();
  return ScanCall{.keyspace = std::move(*request.mutable_keyspace()),
                  .prefix = std::move(*request.mutable_prefix()),
                  .cursor = std::move(*request.mutable_cursor()),
                  .limit = request.limit(),
                  .keys_only = request.keys_only(),
                  .r = *r};
}

absl::StatusOr<Call> ToCall(v1::SessionRequest&& request) {
  switch (request.call_case()) {
    case v1::SessionRequest::kPut:
      return ToCall(std::move(*request.mutable_put()));
    case v1::SessionRequest::kGet:
      return ToCall(std::move(*request.mutable_get()));
    case v1::SessionRequest::kDelete:
      return ToCall(std::move(*request.mutable_delete_()));
    case v1::SessionRequest::kScan:
      return ToCall(std::move(*request.mutable_scan()));
    case v1::SessionRequest::CALL_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("call is none that this server knows; it may be older than the client");
}

void FromCall(PutCall&& call, v1::PutRequest& request) {
  request.set_keyspace(std::move(call.keyspace));
  request.set_key(std::move(call.key));
  request.set_value(std::move(call.value));
  SetCount(call.w, [&] { return request.mutable_w(); });
  request.set_strict(call.strict);
  if (call.context) request.set_context(*std::move(call.context));
  if (call.ttl_ms) request.set_ttl_ms(*call.ttl_ms);
  if (call.expires_ms) request.set_expires_at_ms(*call.expires_ms);
  request.set_write_id(FromWriteId(call.write_id));
  request.set_retry(call.retry);
}

void FromCall(DeleteCall&& call, v1::DeleteRequest& request) {
  request.set_keyspace(std::move(call.keyspace));
  request.set_key(std::move(call.key));
  SetCount(call.w, [&] { return request.mutable_w(); });
  request.set_strict(call.strict);
  if (call.context) request.set_context(*std::move(call.context));
}

void FromResult(WriteResult&& result, uint64_t layout_epoch, v1::PutReply& reply) {
  FromWrite(std::move(result), layout_epoch, reply);
}

void FromResult(WriteResult&& result, uint64_t layout_epoch, v1::DeleteReply& reply) {
  FromWrite(std::move(result), layout_epoch, reply);
}

void FromResult(GetResult&& result, uint64_t layout_epoch, v1::GetReply& reply) {
  FromValues(std::move(result.values), *reply.mutable_values());
  reply.set_context(std::move(result.context));
  reply.set_layout_epoch(layout_epoch);
}

void FromResult(ScanResult&& result, uint64_t layout_epoch, v1::ScanReply& reply) {
  reply.mutable_rows()->Reserve(static_cast<int>(result.rows.size()));
  for (ScanRow& row : result.rows) {
    v1::ScanRow& to = *reply.add_rows();
    to.set_key(std::move(row.key));
    FromValues(std::move(row.values), *to.mutable_values());
    to.set_context(std::move(row.context));
  }
  reply.set_next_cursor(std::move(result.next_cursor));
  reply.set_layout_epoch(layout_epoch);
}

void FromAcks(const Acks& acks, v1::Acknowledgements& wire) {
  wire.set_got(static_cast<uint32_t>(acks.got));
  wire.set_needed(static_cast<uint32_t>(acks.needed));
}

void FromResult(CallResult&& result, v1::SessionReply& reply) {
  const uint64_t epoch = result.layout_epoch;
  if (!result.status.ok()) {
    reply.set_code(static_cast<uint32_t>(result.status.code()));
    reply.set_message(std::string(result.status.message()));
    if (const std::optional<Acks> acks = AcksOf(result.status))
      FromAcks(*acks, *reply.mutable_acknowledgements());
  } else if (auto* write = std::get_if<WriteResult>(&result.result)) {
    if (write->is_delete) return FromResult(std::move(*write), epoch, *reply.mutable_delete_());
    FromResult(std::move(*write), epoch, *reply.mutable_put());
  } else if (auto* get = std::get_if<GetResult>(&result.result)) {
    FromResult(std::move(*get), epoch, *reply.mutable_get());
  } else {
    FromResult(std::get<ScanResult>(std::move(result.result)), epoch, *reply.mutable_scan());
  }
}

CallResult ToResult(v1::SessionReply&& reply) {
  if (reply.code() != 0) {
    absl::Status status(static_cast<absl::StatusCode>(reply.code()), reply.message());
    if (!reply.has_acknowledgements()) return {.status = std::move(status)};
    const v1::Acknowledgements& acks = reply.acknowledgements();
    return {.status =
                WithAcks(std::move(status), {static_cast<int>(acks.got()), static_cast<int>(acks.needed())})};
  }
  if (reply.has_delete_()) return {.result = ToWrite(*reply.mutable_delete_(), true)};
  return {.result = ToWrite(*reply.mutable_put(), false)};
}

}  // namespace gyre
