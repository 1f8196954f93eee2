// keyspace create, list, set, drop.
#include <CLI/CLI.hpp>
#include <memory>

#include "client/cli/options.h"
#include "client/cli/session.h"
#include "client/cli/text.h"

namespace gyre::cli {
namespace {

struct KeyspaceFlags {
  std::string name;
  uint32_t n = 3;
  std::string r;
  std::string w;
  std::string conflict = "siblings";
  std::string ttl;
  bool strict = false;
};

std::optional<Replicas> ReplicasOf(const std::string& flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto replicas = ParseReplicas(text);
  if (!replicas)
    throw CLI::ValidationError(flag, "must be a number, one, quorum or all, not \"" + text + "\"");
  return replicas;
}

std::optional<uint64_t> TtlMsOf(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto ttl = ParseDuration(text);
  if (!ttl) throw CLI::ValidationError("--ttl", "must be like 30s, 5m, 1h or 7d; 0s: never");
  return static_cast<uint64_t>(ttl->count());
}

Json ReplicasJson(const std::optional<Replicas>& replicas) {
  if (!replicas) return "quorum";
  if (replicas->kind() == Replicas::Kind::kCount) return replicas->count();
  return ToText(*replicas);
}

Json KeyspaceJson(const KeyspaceInfo& keyspace) {
  return {{"id", keyspace.id},
          {"name", keyspace.name},
          {"n", keyspace.n},
          {"r", ReplicasJson(keyspace.r)},
          {"w", ReplicasJson(keyspace.w)},
          {"conflict", keyspace.conflict},
          {"ttl_ms", keyspace.ttl_ms},
          {"strict", keyspace.strict}};
}

std::string KeyspaceText(const KeyspaceInfo& keyspace) {
  return keyspace.name + "  n " + std::to_string(keyspace.n) + "  r " +
         ToText(keyspace.r.value_or(Replicas::Quorum())) + "  w " +
         ToText(keyspace.w.value_or(Replicas::Quorum())) + "  " + keyspace.conflict +
         (keyspace.ttl_ms == 0 ? "" : "  ttl " + std::to_string(keyspace.ttl_ms) + "ms") +
         (keyspace.strict ? "  strict" : "");
}

void Told(Session& session, const absl::StatusOr<KeyspaceResult>& result) {
  if (!result.ok()) return session.Fail(result.status(), Effect::kWrite);
  if (!session.json) return session.Print(KeyspaceText(result->keyspace));
  Json json = KeyspaceJson(result->keyspace);
  json["layout"] = result->layout_epoch;
  session.Print(json);
}

void List(Session& session) {
  const auto info = session.Admin().ClusterStatus();
  if (!info.ok()) return session.Fail(info.status(), Effect::kRead);
  Json all = Json::array();
  for (const KeyspaceInfo& keyspace : info->keyspaces) {
    all.push_back(KeyspaceJson(keyspace));
    if (!session.json) session.Print(KeyspaceText(keyspace));
  }
  if (session.json) session.Print(all);
}

}  // namespace

void AddKeyspaceCommands(CLI::App& app, Session& session) {
  CLI::App* keyspace = app.add_subcommand("keyspace", "keyspaces and their replication");
  keyspace->require_subcommand(1);
  const auto flags = std::make_shared<KeyspaceFlags>();
  const auto add_quorums = [&](CLI::App* command) {
    command->add_option("NAME", flags->name, "the keyspace")->required();
    command->add_option("--r", flags->r, "replicas that must answer a read: N, one, quorum, all")
        ->check(NotEmpty());
    command->add_option("--w", flags->w, "replicas that must hold a write")->check(NotEmpty());
    command->add_option("--ttl", flags->ttl, "values expire after: 30s, 5m, 1h, 7d; 0s: never")
        ->check(NotEmpty());
    command->add_flag(
        "--strict,!--sloppy", flags->strict,
        "count primary replicas only, whatever a call says; --sloppy (default): also who stands in "
        "for one that is away");
  };
  CLI::App* create = keyspace->add_subcommand("create", "make a keyspace");
  add_quorums(create);
  create->add_option("--n", flags->n, "replicas of each key (default 3)");
  create->add_option("--conflict", flags->conflict, "siblings (default) or last-write-wins")
      ->check(CLI::IsMember({"siblings", "last-write-wins"}));
  create->callback([&session, flags] {
    KeyspaceInfo made;
    made.name = flags->name;
    made.n = flags->n;
    made.r = ReplicasOf("--r", flags->r);
    made.w = ReplicasOf("--w", flags->w);
    made.conflict = flags->conflict;
    made.ttl_ms = TtlMsOf(flags->ttl).value_or(0);
    made.strict = flags->strict;
    Told(session, session.Admin().CreateKeyspace(made));
  });
  CLI::App* set = keyspace->add_subcommand(
      "set",
      "change what a keyspace asks for by default; gyre cluster plan --keyspace-n changes "
      "N");
  add_quorums(set);
  const CLI::Option* const strict = set->get_option("--strict");
  // Not hidden, and refused with the way to do it: data moves, so it is planned first.
  const auto n = std::make_shared<std::string>();
  set->add_option("--n", *n, "replicas of each key: gyre cluster plan --keyspace-n NAME=N")
      ->check(CLI::Validator(
          [](const std::string&) {
            return std::string(
                "is changed by gyre cluster plan --keyspace-n NAME=N and gyre cluster apply, as it moves "
                "data");
          },
          ""));
  set->callback([&session, flags, strict] {
    Told(session, session.Admin().SetKeyspace(
                      {.name = flags->name,
                       .r = ReplicasOf("--r", flags->r),
                       .w = ReplicasOf("--w", flags->w),
                       .ttl_ms = TtlMsOf(flags->ttl),
                       .strict = strict->count() > 0 ? std::optional(flags->strict) : std::nullopt}));
  });
  CLI::App* drop = keyspace->add_subcommand("drop", "drop a keyspace and what is in it");
  drop->add_option("NAME", flags->name, "the keyspace")->required();
  drop->callback([&session, flags] { Told(session, session.Admin().DropKeyspace(flags->name)); });
  keyspace->add_subcommand("list", "all keyspaces")->callback([&session] { List(session); });
}

}  // namespace gyre::cli
