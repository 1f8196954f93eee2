// Plans as JSON.
#include "client/cli/plan_file.h"

#include <charconv>
#include <utility>
#include <vector>

#include "client/cli/text.h"
#include "ring/token.h"

namespace gyre::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Over everything but itself.
std::string ChecksumOf(Json document) {
  document.erase("checksum");
  return ToHex(TokenOf(Dump(document)).value);
}

Json NumbersToJson(const std::vector<ClusterChanges::Number>& numbers) {
  Json json = Json::object();
  for (const ClusterChanges::Number& number : numbers) json[number.name] = number.number;
  return json;
}

Json ChangesToJson(const ClusterChanges& changes) {
  Json replace = Json::object();
  for (const ClusterChanges::Replace& each : changes.replace) replace[each.old] = each.by;
  Json zone = Json::object();
  for (const ClusterChanges::Zone& each : changes.zone) zone[each.node] = each.zone;
  return {{"add", changes.add},
          {"remove", changes.remove},
          {"replace", replace},
          {"weight", NumbersToJson(changes.weight)},
          {"zone", zone},
          {"tokens", NumbersToJson(changes.tokens)},
          {"keyspace_n", NumbersToJson(changes.keyspace_n)}};
}

Json BalanceToJson(const ShareBalance& balance) {
  return {{"owned", balance.owned}, {"replicated", balance.replicated}};
}

std::optional<uint64_t> FromHex(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::Status Wrong(const std::string& what) { return absl::InvalidArgumentError(what); }

// What stands in a document that PlanToJson made. The first thing that is missing or of another type throws:
// the caller has proven by the checksum that nothing was edited, so it is no plan of this format at all.
ShareBalance BalanceFromJson(const Json& json) {
  return {.owned = json.at("owned").get<double>(), .replicated = json.at("replicated").get<double>()};
}

std::vector<ClusterChanges::Number> NumbersFromJson(const Json& json) {
  std::vector<ClusterChanges::Number> numbers;
  for (const auto& [name, number] : json.items()) numbers.push_back({name, number.get<uint32_t>()});
  return numbers;
}

ClusterPlan Read(const Json& json) {
  ClusterPlan plan;
  plan.base_epoch = json.at("base").at("version").get<uint64_t>();
  plan.base_digest = FromHex(json.at("base").at("digest").get<std::string>()).value();
  plan.hash = FromHex(json.at("hash").get<std::string>()).value();
  const Json& changes = json.at("changes");
  plan.changes.add = changes.at("add").get<std::vector<std::string>>();
  plan.changes.remove = changes.at("remove").get<std::vector<std::string>>();
  for (const auto& [old, by] : changes.at("replace").items()) {
    plan.changes.replace.push_back({old, by.get<std::string>()});
  }
  plan.changes.weight = NumbersFromJson(changes.at("weight"));
  for (const auto& [node, zone] : changes.at("zone").items()) {
    plan.changes.zone.push_back({node, zone.get<std::string>()});
  }
  plan.changes.tokens = NumbersFromJson(changes.at("tokens"));
  plan.changes.keyspace_n = NumbersFromJson(changes.at("keyspace_n"));
  for (const Json& move : json.at("moves")) {
    plan.moves.push_back({.from = move.at("from").get<std::string>(),
                          .to = move.at("to").get<std::string>(),
                          .ranges = move.at("ranges").get<uint64_t>(),
                          .keys = move.at("keys").get<uint64_t>(),
                          .bytes = move.at("bytes").get<uint64_t>()});
  }
  plan.before = BalanceFromJson(json.at("balance").at("before"));
  plan.after = BalanceFromJson(json.at("balance").at("after"));
  plan.warnings = json.at("warnings").get<std::vector<std::string>>();
  plan.loss = json.at("loss").get<std::vector<std::string>>();
  return plan;
}

}  // namespace

Json PlanToJson(const ClusterPlan& plan) {
  Json moves = Json::array();
  for (const PlannedMove& move : plan.moves) {
    moves.push_back({{"from", move.from},
                     {"to", move.to},
                     {"ranges", move.ranges},
                     {"keys", move.keys},
                     {"bytes", move.bytes}});
  }
  Json json = {{"format", kPlanFormat},
               {"base", {{"version", plan.base_epoch}, {"digest", ToHex(plan.base_digest)}}},
               {"changes", ChangesToJson(plan.changes)},
               {"hash", ToHex(plan.hash)},
               {"moves", moves},
               {"balance", {{"before", BalanceToJson(plan.before)}, {"after", BalanceToJson(plan.after)}}},
               {"warnings", plan.warnings},
               {"loss", plan.loss}};
  json["checksum"] = ChecksumOf(json);
  return json;
}

absl::StatusOr<ClusterPlan> PlanFromJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return Wrong("it is not JSON: is a part of it missing? Plan again with gyre cluster plan --out FILE");
  }
  const auto format = json.is_object() ? json.find("format") : json.end();
  if (!json.is_object() || format == json.end() || !format->is_number_integer() ||
      !json.contains("checksum")) {
    return Wrong("it is not a plan: gyre cluster plan --out FILE writes one");
  }
  if (*format != kPlanFormat) {
    return Wrong("it is a plan of format " + format->dump() + ", and this gyre knows format " +
                 std::to_string(kPlanFormat) + ": plan again with the gyre that is to apply it");
  }
  if (json["checksum"] != ChecksumOf(json)) {
    return Wrong("it was edited after it was made: plan again with what it should say");
  }
  try {
    ClusterPlan plan = Read(json);
    if (PlanToJson(plan) == json) return plan;
  } catch (const std::exception&) {  // said below
  }
  return Wrong("it is not a plan of format " + std::to_string(kPlanFormat) +
               ": gyre cluster plan --out FILE writes one");
}

}  // namespace gyre::cli
