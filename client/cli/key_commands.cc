// put, get, delete, locate.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "client/cli/options.h"
#include "client/cli/session.h"
#include "client/cli/text.h"

namespace gyre::cli {
namespace {

// The texts of the flags of one command.
struct Flags {
  std::string first;  // positionals; which is which depends on --key-base64
  std::string second;
  CLI::Option* first_given = nullptr;
  CLI::Option* second_given = nullptr;
  std::string key_base64;
  std::string value_base64;
  std::string file;
  std::string replicas;
  std::string context;
  std::string ttl;
  bool strict = false;
  bool siblings = false;
  CLI::Option* value_base64_given = nullptr;
  CLI::Option* file_given = nullptr;
};

void AddKey(CLI::App& command, Flags& flags) {
  flags.first_given = command.add_option("KEY", flags.first, "the key");
  command.add_option("--key-base64", flags.key_base64, "the key, for bytes that no argument can hold")
      ->check(NotEmpty());
}

void AddReplicas(CLI::App& command, Flags& flags, const std::string& name) {
  command.add_option(name, flags.replicas, "N, one, quorum or all")->check(NotEmpty());
  command.add_flag("--strict", flags.strict, "count primary replicas only");
}

// Each throws what becomes exit code 2.
std::optional<std::string> Base64(const std::string& flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::optional<std::string> bytes = FromBase64(text);
  if (!bytes) throw CLI::ValidationError(flag, "is not base64");
  return bytes;
}

std::optional<Replicas> ReplicasOf(const std::string& flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::optional<Replicas> replicas = ParseReplicas(text);
  if (!replicas)
    throw CLI::ValidationError(flag, "must be a number, one, quorum or all, not \"" + text + "\"");
  return replicas;
}

std::optional<std::chrono::milliseconds> TtlOf(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto ttl = ParseDuration(text);
  if (!ttl) throw CLI::ValidationError("--ttl", "must be like 30s, 5m, 1h or 7d");
  return ttl;
}

std::string KeyOf(const Flags& flags) {
  if (const auto key = Base64("--key-base64", flags.key_base64)) {
    if (flags.first_given->count() > 0 && flags.second_given == nullptr) {
      throw CLI::ValidationError("KEY", "is given twice, as it is in --key-base64 too");
    }
    return *key;
  }
  if (flags.first_given->count() == 0) throw CLI::RequiredError("KEY");
  return flags.first;
}

std::string ValueOf(const Flags& flags) {
  const bool key_elsewhere = !flags.key_base64.empty();
  const std::string* positional = nullptr;
  if (key_elsewhere && flags.second_given->count() > 0) throw CLI::ValidationError("VALUE", "is given twice");
  if (key_elsewhere && flags.first_given->count() > 0) positional = &flags.first;
  if (!key_elsewhere && flags.second_given->count() > 0) positional = &flags.second;
  const size_t sources =
      (positional != nullptr ? 1 : 0) + flags.file_given->count() + flags.value_base64_given->count();
  if (sources != 1)
    throw CLI::ValidationError("VALUE", "must be given once: VALUE, -, --file or --value-base64");
  if (flags.value_base64_given->count() > 0) return Base64("--value-base64", flags.value_base64).value_or("");
  if (positional != nullptr && *positional != "-") return *positional;
  std::ifstream file;
  if (positional == nullptr) {
    file.open(flags.file, std::ios::binary);
    if (!file) throw CLI::ValidationError("--file", "cannot read " + flags.file);
  }
  std::istream& in = positional == nullptr ? static_cast<std::istream&>(file) : std::cin;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Of the flag; else, in a shell, what was last seen of the key there.
std::optional<std::string> ContextFor(const Session& session, const std::string& key,
                                      const std::string& flag) {
  if (!flag.empty()) return Base64("--context", flag);
  return session.memory == nullptr ? std::nullopt : session.memory->ContextOf(session.keyspace, key);
}

void Remember(Session& session, const std::string& key, const std::string& context) {
  if (session.memory != nullptr) session.memory->Saw(session.keyspace, key, context);
}

Json ValueJson(const Value& value) {
  Json json;
  AddBytes(json, "value", value.bytes);
  json["dot"] = value.dot;
  json["expires_at"] = value.expires_at_ms == 0 ? Json(nullptr) : Json(value.expires_at_ms);
  return json;
}

void Put(Session& session, const Flags& flags) {
  const std::string key = KeyOf(flags);
  const PutOptions options{.keyspace = {},
                           .w = ReplicasOf("-w", flags.replicas),
                           .strict = flags.strict,
                           .context = ContextFor(session, key, flags.context),
                           .ttl = TtlOf(flags.ttl),
                           .timeout = {}};
  std::string value = ValueOf(flags);
  absl::StatusOr<Client> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status(), Effect::kRead);
  const auto put = client->Put(key, std::move(value), options);
  if (!put.ok()) return session.Fail(put.status(), Effect::kWrite);
  Remember(session, key, put->context);
  if (!session.json) return;
  Json json;
  AddBytes(json, "key", key);
  json["context"] = ToBase64(put->context);
  json["acks"] = put->acks;
  json["fallbacks"] = put->fallbacks;
  session.Print(json);
}

void PrintText(Session& session, const std::string& key, const GetResult& get, bool siblings) {
  if (!get.found()) return session.Fail(kKeyNotFound, "NOT_FOUND", "key \"" + key + "\" is not there");
  if (get.values.size() == 1) return session.PrintBytes(get.values[0].bytes);
  if (siblings) {
    for (const Value& value : get.values) session.Print(value.bytes);
    return;
  }
  std::string message = "key \"" + key + "\" has " + std::to_string(get.values.size()) +
                        " siblings: put one value with --context " + ToBase64(get.context) + "; they are";
  for (const Value& value : get.values) message += "\n  " + value.dot + "  " + value.bytes;
  session.Fail(kConflict, "CONFLICT", message);
}

void Get(Session& session, const Flags& flags) {
  const std::string key = KeyOf(flags);
  const GetOptions options{
      .keyspace = {}, .r = ReplicasOf("-r", flags.replicas), .strict = flags.strict, .timeout = {}};
  absl::StatusOr<Client> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status(), Effect::kRead);
  const auto get = client->Get(key, options);
  if (!get.ok()) return session.Fail(get.status(), Effect::kRead);
  Remember(session, key, get->context);
  if (!session.json) return PrintText(session, key, *get, flags.siblings);
  Json json;
  AddBytes(json, "key", key);
  json["context"] = ToBase64(get->context);
  json["found"] = get->found();
  json["values"] = Json::array();
  for (const Value& value : get->values) json["values"].push_back(ValueJson(value));
  session.Print(json);
  if (!get->found()) session.exit_code = kKeyNotFound;
}

void Delete(Session& session, const Flags& flags) {
  const std::string key = KeyOf(flags);
  const DeleteOptions options{.keyspace = {},
                              .w = ReplicasOf("-w", flags.replicas),
                              .strict = flags.strict,
                              .context = ContextFor(session, key, flags.context),
                              .timeout = {}};
  absl::StatusOr<Client> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status(), Effect::kRead);
  const auto result = client->Delete(key, options);
  if (!result.ok()) return session.Fail(result.status(), Effect::kWrite);
  Remember(session, key, result->context);
  if (!session.json) return;
  Json json;
  AddBytes(json, "key", key);
  json["context"] = ToBase64(result->context);
  session.Print(json);
}

Json NodesJson(const std::vector<NodeStatus>& nodes) {
  Json json = Json::array();
  for (const NodeStatus& node : nodes) {
    json.push_back(
        {{"node", node.id}, {"address", node.address}, {"zone", node.zone}, {"state", node.state}});
  }
  return json;
}

void Locate(Session& session, const Flags& flags) {
  const std::string key = KeyOf(flags);
  const auto location = session.Admin().Locate(session.keyspace, key);
  if (!location.ok()) return session.Fail(location.status(), Effect::kRead);
  if (session.json) {
    Json json;
    AddBytes(json, "key", key);
    json["token"] = ToHex(location->token);
    json["layout"] = location->layout_epoch;
    json["preference_list"] = NodesJson(location->primaries);
    json["fallbacks"] = NodesJson(location->fallbacks);
    return session.Print(json);
  }
  session.Print("token " + ToHex(location->token) + "  layout " + std::to_string(location->layout_epoch));
  const auto print = [&](const char* role, const std::vector<NodeStatus>& nodes) {
    for (const NodeStatus& node : nodes) {
      session.Print(std::string(role) + "  " + node.id + "  " + node.address + "  " + node.state +
                    (node.zone.empty() ? "" : "  zone " + node.zone));
    }
  };
  print("primary ", location->primaries);
  print("fallback", location->fallbacks);
}

}  // namespace

void AddKeyCommands(CLI::App& app, Session& session) {
  {
    auto flags = std::make_shared<Flags>();
    CLI::App* put =
        app.add_subcommand("put", "write a key: put KEY VALUE, put KEY - (stdin), put KEY --file F");
    AddKey(*put, *flags);
    flags->second_given = put->add_option("VALUE", flags->second, "the value; - reads it from stdin");
    flags->file_given =
        put->add_option("--file", flags->file, "read the value from this file")->check(NotEmpty());
    flags->value_base64_given = put->add_option("--value-base64", flags->value_base64, "the value");
    AddReplicas(*put, *flags, "-w");
    put->add_option("--context", flags->context,
                    "of an earlier get or put of this key: replaces what that saw")
        ->check(NotEmpty());
    put->add_option("--ttl", flags->ttl, "expires after: 30s, 5m, 1h, 7d")->check(NotEmpty());
    put->callback([&session, flags] { Put(session, *flags); });
  }
  {
    auto flags = std::make_shared<Flags>();
    CLI::App* get = app.add_subcommand("get", "read a key: prints its exact bytes");
    AddKey(*get, *flags);
    AddReplicas(*get, *flags, "-r");
    get->add_flag("--siblings", flags->siblings, "print all siblings, one a line");
    get->callback([&session, flags] { Get(session, *flags); });
  }
  {
    auto flags = std::make_shared<Flags>();
    CLI::App* del = app.add_subcommand("delete", "delete a key; it need not be there");
    AddKey(*del, *flags);
    AddReplicas(*del, *flags, "-w");
    del->add_option("--context", flags->context, "of an earlier get or put: deletes only what that saw")
        ->check(NotEmpty());
    del->callback([&session, flags] { Delete(session, *flags); });
  }
  {
    auto flags = std::make_shared<Flags>();
    CLI::App* locate = app.add_subcommand("locate", "show which nodes hold a key");
    AddKey(*locate, *flags);
    locate->callback([&session, flags] { Locate(session, *flags); });
  }
}

}  // namespace gyre::cli
