// node dump, verify, stats, hotkeys: what single nodes hold and do.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "client/cli/node_name.h"
#include "client/cli/options.h"
#include "client/cli/session.h"
#include "client/cli/text.h"

namespace gyre::cli {
namespace {

constexpr size_t kHotKeysShown = 10;

// A key as a column of a table: what would break the line or the terminal is replaced.
std::string Shown(const std::string& key) {
  if (!IsUtf8(key)) return "base64:" + ToBase64(key);
  std::string shown;
  for (const char c : key) shown += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? '?' : c;
  return shown;
}

struct NodeFlags {
  std::string node;  // an id; empty: see each command
  std::string key;
  std::string key_base64;
  size_t limit = kHotKeysShown;
};

// The members to ask: the one named, else all.
absl::StatusOr<std::vector<NodeStatus>> NodesOf(const Session& session, const std::string& id) {
  const auto info = session.Admin().ClusterStatus();
  if (!info.ok()) return info.status();
  const auto named = IdOfAddress(*info, id);
  if (!named.ok()) return named.status();
  std::vector<NodeStatus> nodes;
  for (const NodeStatus& node : info->nodes) {
    if (id.empty() ? node.member : node.id == *named) nodes.push_back(node);
  }
  if (nodes.empty())
    return absl::InvalidArgumentError("there is no node \"" + id + "\": see gyre cluster status");
  return nodes;
}

// The node to ask alone: the one named, else the first endpoint that answers.
absl::StatusOr<AdminClient> NodeOf(const Session& session, const std::string& id) {
  if (id.empty()) return session.Admin();
  const auto nodes = NodesOf(session, id);
  if (!nodes.ok()) return nodes.status();
  return session.AdminOf(nodes->front().address);
}

void Dump(Session& session, const NodeFlags& flags) {
  std::string key = flags.key;
  if (!flags.key_base64.empty()) {
    const auto bytes = FromBase64(flags.key_base64);
    if (!bytes) throw CLI::ValidationError("--key-base64", "is not base64");
    key = *bytes;
  }
  if (key.empty()) throw CLI::RequiredError("KEY");
  auto node = NodeOf(session, flags.node);
  if (!node.ok()) return session.Fail(node.status(), Effect::kRead);
  const auto dump = node->NodeDump(session.keyspace, key);
  if (!dump.ok()) return session.Fail(dump.status(), Effect::kRead);
  Json json;
  json["node"] = dump->node;
  AddBytes(json, "key", key);
  json["found"] = dump->found;
  json["record_base64"] = ToBase64(dump->record);
  json["seen"] = dump->seen;
  json["versions"] = Json::array();
  for (const DumpedVersion& version : dump->versions) {
    Json one;
    AddBytes(one, "value", version.value.bytes);
    one["dot"] = version.value.dot;
    one["expires_at"] = version.value.expires_at_ms == 0 ? Json(nullptr) : Json(version.value.expires_at_ms);
    one["write_id"] = version.write_id;
    one["retried"] = version.retried;
    json["versions"].push_back(one);
  }
  if (session.json) {
    session.Print(json);
  } else {
    session.Print(json.dump(2));
  }
  if (!dump->found) session.exit_code = kKeyNotFound;
}

void Verify(Session& session, const NodeFlags& flags) {
  const auto nodes = NodesOf(session, flags.node);
  if (!nodes.ok()) return session.Fail(nodes.status(), Effect::kRead);
  Verification total;
  for (const NodeStatus& node : *nodes) {
    const auto one = session.AdminOf(node.address).NodeVerify();
    if (!one.ok()) {
      return session.Fail(
          absl::Status(one.status().code(), "node " + node.id + ": " + std::string(one.status().message())),
          Effect::kRead);
    }
    total.leaves += one->leaves;
    total.rows += one->rows;
    total.differences += one->differences;
  }
  if (session.json) {
    session.Print(Json{{"leaves", total.leaves}, {"rows", total.rows}, {"differences", total.differences}});
  } else {
    session.Print(std::to_string(total.leaves) + " leaves, " + std::to_string(total.rows) + " rows, " +
                  std::to_string(total.differences) + " differences");
  }
  if (total.differences != 0) session.exit_code = kOtherFailure;
}

void Stats(Session& session, const NodeFlags& flags) {
  auto node = NodeOf(session, flags.node);
  if (!node.ok()) return session.Fail(node.status(), Effect::kRead);
  const auto stats = node->NodeStats();
  if (!stats.ok()) return session.Fail(stats.status(), Effect::kRead);
  if (session.json) return session.Print(Json{{"node", stats->node}, {"counters", stats->counters}});
  session.Print("node " + stats->node);
  for (const auto& [name, value] : stats->counters) session.Print(name + " " + Json(value).dump());
}

void PrintHotKeys(Session& session, const NodeFlags& flags) {
  const auto nodes = NodesOf(session, flags.node);
  if (!nodes.ok()) return session.Fail(nodes.status(), Effect::kRead);
  Json all = Json::array();
  Table rows = {{"NODE", "KEYSPACE", "CALLS", "OF ALL", "KEY"}};
  for (const NodeStatus& node : *nodes) {
    const auto stats = session.AdminOf(node.address).NodeStats();
    if (!stats.ok()) {
      return session.Fail(absl::Status(stats.status().code(),
                                       "node " + node.id + ": " + std::string(stats.status().message())),
                          Effect::kRead);
    }
    for (size_t i = 0; i < std::min(flags.limit, stats->hot_keys.size()); ++i) {
      const HotKey& hot = stats->hot_keys[i];
      const double share =
          static_cast<double>(hot.calls) / static_cast<double>(std::max<uint64_t>(stats->calls, 1));
      Json json = {{"node", node.id}, {"keyspace", hot.keyspace}};
      AddBytes(json, "key", hot.key);
      json["calls"] = hot.calls;
      json["too_many"] = hot.too_many;
      json["share"] = share;
      all.push_back(json);
      rows.push_back({node.id, hot.keyspace, std::to_string(hot.calls),
                      std::to_string(static_cast<int>(100 * share + .5)) + "%", Shown(hot.key)});
    }
  }
  if (session.json) return session.Print(all);
  session.Print(rows);
}

}  // namespace

void AddNodeCommands(CLI::App& app, Session& session) {
  CLI::App* node = app.add_subcommand("node", "single nodes");
  node->require_subcommand(1);
  const auto flags = std::make_shared<NodeFlags>();
  const auto add = [&](const char* name, const char* help, void (*run)(Session&, const NodeFlags&)) {
    CLI::App* command = node->add_subcommand(name, help);
    command->callback([&session, flags, run] { run(session, *flags); });
    return command;
  };
  const char* first = "id or HOST:PORT of the node; default: the first endpoint that answers";
  CLI::App* dump = add("dump", "the record of a key on one node, decoded", Dump);
  dump->add_option("KEY", flags->key, "the key");
  dump->add_option("--key-base64", flags->key_base64, "the key, for bytes that no argument can hold")
      ->check(NotEmpty());
  dump->add_option("--node", flags->node, first)->check(NotEmpty());
  add("verify", "recount the Merkle sums from disk; exit 1 if any differs", Verify)
      ->add_option("--node", flags->node, "id or HOST:PORT of the node; default: all members, summed")
      ->check(NotEmpty());
  CLI::App* hot =
      add("hotkeys", "the keys that clients ask for most, from a sample of their calls", PrintHotKeys);
  hot->add_option("--node", flags->node, "id or HOST:PORT of the node; default: each member")
      ->check(NotEmpty());
  hot->add_option("--limit", flags->limit, "so many of each node (default 10)")->check(CLI::Range(1, 256));
  add("stats", "counters of one node", Stats)->add_option("--node", flags->node, first)->check(NotEmpty());
}

}  // namespace gyre::cli
