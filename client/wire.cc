// Field by field between values and messages.
#include "client/wire.h"

#include <string>
#include <utility>

namespace gyre {
inline namespace sdk {
namespace {

constexpr size_t kRequestOverheadBytes = 64;  // ids, lengths, options
constexpr int kCodeMax = 16;                  // of google.rpc.Code

size_t PayloadBytes(const PutRequest& r) {
  return r.keyspace.size() + r.key.size() + r.value.size() + r.write_id.size() +
         (r.context ? r.context->size() : 0);
}
size_t ContextBytes(const std::vector<std::string>& contexts) {
  size_t bytes = 0;
  for (const std::string& context : contexts) bytes += context.size();
  return bytes;
}
size_t PayloadBytes(const GetRequest& r) {
  return r.keyspace.size() + r.key.size() + ContextBytes(r.contexts);
}
size_t PayloadBytes(const DeleteRequest& r) {
  return r.keyspace.size() + r.key.size() + (r.context ? r.context->size() : 0);
}
size_t PayloadBytes(const ScanRequest& r) { return r.keyspace.size() + r.prefix.size() + r.cursor.size(); }

void Fill(const PutRequest& r, v1::SessionRequest& wire) {
  v1::PutRequest& put = *wire.mutable_put();
  put.set_keyspace(r.keyspace);
  put.set_key(r.key);
  put.set_value(r.value);
  if (r.w) ToWire(*r.w, *put.mutable_w());
  put.set_strict(r.strict);
  if (r.context) put.set_context(*r.context);
  if (r.ttl) put.set_ttl_ms(r.ttl->count());
  if (r.expires_at_ms) put.set_expires_at_ms(*r.expires_at_ms);
  put.set_write_id(r.write_id);
  put.set_retry(r.retry);
}

void Fill(const GetRequest& r, v1::SessionRequest& wire) {
  v1::GetRequest& get = *wire.mutable_get();
  get.set_keyspace(r.keyspace);
  get.set_key(r.key);
  if (r.r) ToWire(*r.r, *get.mutable_r());
  get.set_strict(r.strict);
  for (const std::string& context : r.contexts) get.add_contexts(context);
}

void Fill(const DeleteRequest& r, v1::SessionRequest& wire) {
  v1::DeleteRequest& del = *wire.mutable_delete_();
  del.set_keyspace(r.keyspace);
  del.set_key(r.key);
  if (r.w) ToWire(*r.w, *del.mutable_w());
  del.set_strict(r.strict);
  if (r.context) del.set_context(*r.context);
}

void Fill(const ScanRequest& r, v1::SessionRequest& wire) {
  v1::ScanRequest& scan = *wire.mutable_scan();
  scan.set_keyspace(r.keyspace);
  scan.set_prefix(r.prefix);
  scan.set_cursor(r.cursor);
  scan.set_limit(r.page_rows);
  scan.set_keys_only(r.keys_only);
  if (r.r) ToWire(*r.r, *scan.mutable_r());
}

template <typename Wires>
std::vector<Value> ValuesOf(Wires& wires) {
  std::vector<Value> values;
  values.reserve(static_cast<size_t>(wires.size()));
  for (v1::Value& wire : wires) {
    values.push_back({.bytes = std::move(*wire.mutable_value()),
                      .dot = std::move(*wire.mutable_dot()),
                      .expires_at_ms = wire.expires_at_ms()});
  }
  return values;
}

Reply ReplyOf(v1::SessionReply& wire) {
  switch (wire.result_case()) {
    case v1::SessionReply::kPut: {
      v1::PutReply& put = *wire.mutable_put();
      return PutResult{
          .context = std::move(*put.mutable_context()), .acks = put.acks(), .fallbacks = put.fallbacks()};
    }
    case v1::SessionReply::kGet: {
      v1::GetReply& get = *wire.mutable_get();
      return GetResult{.values = ValuesOf(*get.mutable_values()),
                       .context = std::move(*get.mutable_context())};
    }
    case v1::SessionReply::kDelete: {
      v1::DeleteReply& del = *wire.mutable_delete_();
      return DeleteResult{
          .context = std::move(*del.mutable_context()), .acks = del.acks(), .fallbacks = del.fallbacks()};
    }
    case v1::SessionReply::kScan: {
      v1::ScanReply& scan = *wire.mutable_scan();
      ScanPage page;
      page.rows.reserve(static_cast<size_t>(scan.rows_size()));
      for (v1::ScanRow& row : *scan.mutable_rows()) {
        page.rows.push_back({.key = std::move(*row.mutable_key()),
                             .values = ValuesOf(*row.mutable_values()),
                             .context = std::move(*row.mutable_context())});
      }
      page.next_cursor = std::move(*scan.mutable_next_cursor());
      return page;
    }
    case v1::SessionReply::RESULT_NOT_SET:
      break;
  }
  return std::monostate{};
}

}  // namespace

size_t WireBytes(const Request& request) {
  return kRequestOverheadBytes + std::visit([](const auto& r) { return PayloadBytes(r); }, request);
}

void ToWire(const Replicas& replicas, v1::Replicas& wire) {
  switch (replicas.kind()) {
    case Replicas::Kind::kCount:
      return wire.set_count(replicas.count());
    case Replicas::Kind::kOne:
      return wire.set_name(v1::Replicas::ONE);
    case Replicas::Kind::kQuorum:
      return wire.set_name(v1::Replicas::QUORUM);
    case Replicas::Kind::kAll:
      return wire.set_name(v1::Replicas::ALL);
  }
}

void ToWire(const Request& request, v1::SessionRequest& wire) {
  std::visit([&](const auto& r) { Fill(r, wire); }, request);
}

AttemptResult FromWire(v1::SessionReply& wire) {
  if (wire.code() == 0) return {.fate = Fate::kAnswered, .status = absl::OkStatus(), .reply = ReplyOf(wire)};
  const int code =
      wire.code() <= kCodeMax ? static_cast<int>(wire.code()) : static_cast<int>(absl::StatusCode::kUnknown);
  absl::Status status(static_cast<absl::StatusCode>(code), wire.message());
  if (wire.has_acknowledgements()) {
    status = WithAcknowledgements(std::move(status),
                                  {wire.acknowledgements().got(), wire.acknowledgements().needed()});
  }
  return {.fate = Fate::kAnswered, .status = std::move(status), .reply = {}};
}

uint64_t LayoutEpochOf(const v1::SessionReply& wire) {
  switch (wire.result_case()) {
    case v1::SessionReply::kPut:
      return wire.put().layout_epoch();
    case v1::SessionReply::kGet:
      return wire.get().layout_epoch();
    case v1::SessionReply::kDelete:
      return wire.delete_().layout_epoch();
    case v1::SessionReply::kScan:
      return wire.scan().layout_epoch();
    case v1::SessionReply::RESULT_NOT_SET:
      break;
  }
  return 0;
}

}  // namespace sdk
}  // namespace gyre
