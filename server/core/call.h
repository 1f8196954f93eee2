// What clients ask of a node and what they are told: calls and results as values.
#pragma once

#include <absl/status/status.h>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/core/layout.h"
#include "storage/causal/record.h"

namespace gyre {

// Fields as in proto/kv.proto. An absent count means what the keyspace says.
struct PutCall {
  std::string keyspace;
  std::string key;
  std::string value;
  std::optional<ReplicaCount> w;
  bool strict = false;
  std::optional<std::string> context;  // encoded
  std::optional<int64_t> ttl_ms;
  std::optional<uint64_t> expires_ms = {};  // instead of ttl_ms; milliseconds since 1970, 0: never
  WriteId write_id;
  bool retry = false;
};
struct DeleteCall {
  std::string keyspace;
  std::string key;
  std::optional<ReplicaCount> w;
  bool strict = false;
  std::optional<std::string> context;
};
struct GetCall {
  static constexpr size_t kContextsMax = 64;
  std::string keyspace;
  std::string key;
  std::optional<ReplicaCount> r;
  bool strict = false;
  std::vector<std::string> contexts;  // encoded; the answer must have seen all that they have
};
struct ScanCall {
  static constexpr uint32_t kRowsMax = 1000;
  std::string keyspace;
  std::string prefix;
  std::string cursor;
  uint32_t limit = 0;
  bool keys_only = false;
  std::optional<ReplicaCount> r;
};
using Call = std::variant<PutCall, GetCall, DeleteCall, ScanCall>;

struct WriteResult {
  std::string context;  // encoded
  int acks = 0;
  int fallbacks = 0;
  bool is_delete = false;
};
struct ReadValue {
  std::string value;
  Dot dot;
  uint64_t expires_ms = 0;
};
struct GetResult {
  std::vector<ReadValue> values;
  std::string context;  // encoded
};
struct ScanRow {
  std::string key;
  std::vector<ReadValue> values;
  std::string context;
};
struct ScanResult {
  std::vector<ScanRow> rows;
  std::string next_cursor;  // empty: complete
};

// `status` uses the codes that proto/kv.proto names; only with OK is there a result.
struct CallResult {
  absl::Status status;
  std::variant<std::monostate, WriteResult, GetResult, ScanResult> result;
  uint64_t layout_epoch = 0;
};

}  // namespace gyre
