// A plan as one JSON document: what `cluster plan` prints and writes, and `cluster apply` takes.
//
//   {"format":1, "base":{"version":7,"digest":"…"},
//   "changes":{"add":[ID…],"remove":[ID…],"replace":{OLD:NEW},
//    "weight":{ID:W},"zone":{ID:Z},"tokens":{ID:N},"keyspace_n":{NAME:N}}, "hash":"…",
//    "moves":[{"from","to","ranges","keys","bytes"}],
//    "balance":{"before":{"owned","replicated"},"after":{…}}, "warnings":[…], "loss":[…], "checksum":"…"}
//
// `checksum` is over all that stands before it, so that an edited plan is noticed whatever was edited: the
// server's check of the hash leaves out what an operator read and agreed to.
#pragma once

#include <absl/status/statusor.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "client/admin.h"

namespace gyre::cli {

constexpr int kPlanFormat = 1;

nlohmann::ordered_json PlanToJson(const ClusterPlan& plan);

// INVALID_ARGUMENT says what is wrong: no JSON (a part is missing), no plan, of another format, or edited.
absl::StatusOr<ClusterPlan> PlanFromJson(std::string_view text);

}  // namespace gyre::cli
