// Requests of clients: a call has all that its request says, and a forwarded one says it again.
#include "server/rpc/convert_kv.h"
#include "tests/fuzz/fuzz.h"

namespace gyre {
namespace {

std::string Meaning(v1::SessionRequest request) {
  request.DiscardUnknownFields();
  request.clear_id();
  request.clear_timeout_ms();
  if (request.has_put() && request.put().write_id() == std::string(16, '\0')) {
    request.mutable_put()->clear_write_id();
  }
  return request.SerializeAsString();
}

void SetCount(const std::optional<ReplicaCount>& count, auto mutable_field) {
  if (count) FromReplicaCount(*count, *mutable_field());
}

// The server never sends these: a client's own conversion is not part of it.
void FromCall(GetCall&& call, v1::GetRequest& request) {
  request.set_keyspace(call.keyspace);
  request.set_key(call.key);
  request.set_strict(call.strict);
  for (const std::string& context : call.contexts) request.add_contexts(context);
  SetCount(call.r, [&] { return request.mutable_r(); });
}
void FromCall(ScanCall&& call, v1::ScanRequest& request) {
  request.set_keyspace(call.keyspace);
  request.set_prefix(call.prefix);
  request.set_cursor(call.cursor);
  request.set_limit(call.limit);
  request.set_keys_only(call.keys_only);
  SetCount(call.r, [&] { return request.mutable_r(); });
}

}  // namespace
}  // namespace gyre

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  v1::SessionRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;
  absl::StatusOr<Call> call = ToCall(v1::SessionRequest(request));
  if (!call.ok()) {
    assert(!call.status().message().empty());
    return 0;
  }
  v1::SessionRequest again;
  if (auto* put = std::get_if<PutCall>(&*call)) FromCall(std::move(*put), *again.mutable_put());
  if (auto* get = std::get_if<GetCall>(&*call)) FromCall(std::move(*get), *again.mutable_get());
  if (auto* gone = std::get_if<DeleteCall>(&*call)) FromCall(std::move(*gone), *again.mutable_delete_());
  if (auto* scan = std::get_if<ScanCall>(&*call)) FromCall(std::move(*scan), *again.mutable_scan());
  assert(Meaning(again) == Meaning(request));
  return 0;
}
