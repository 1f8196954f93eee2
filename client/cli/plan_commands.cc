// cluster plan, apply: changing the members.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "client/cli/node_name.h"
#include "client/cli/options.h"
#include "client/cli/pause.h"
#include "client/cli/plan_file.h"
#include "client/cli/progress.h"
#include "client/cli/session.h"
#include "client/cli/text.h"

namespace gyre::cli {
namespace {

struct PlanFlags {
  std::vector<std::string> add;
  std::vector<std::string> remove;
  std::vector<std::string> replace;
  std::vector<std::string> weight;
  std::vector<std::string> zone;
  std::vector<std::string> tokens;
  std::vector<std::string> keyspace_n;
  std::string out;
};

struct NameAndText {
  std::string name;
  std::string text;
};

// "NAME=TEXT"; the text may be empty where a zone may.
NameAndText Split(const std::string& flag, const std::string& value, const char* form,
                  bool may_be_empty = false) {
  const size_t equals = value.find('=');
  if (equals == std::string::npos || equals == 0 || (!may_be_empty && equals + 1 == value.size())) {
    throw CLI::ValidationError(flag, std::string("must be like ") + form + ", not \"" + value + "\"");
  }
  return {value.substr(0, equals), value.substr(equals + 1)};
}

std::vector<ClusterChanges::Number> Numbers(const std::string& flag, const std::vector<std::string>& values,
                                            const char* form, uint32_t most) {
  std::vector<ClusterChanges::Number> numbers;
  for (const std::string& value : values) {
    const auto [name, text] = Split(flag, value, form);
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > most) {
      throw CLI::ValidationError(
          flag, "must be a whole number from 1 to " + std::to_string(most) + ", not \"" + text + "\"");
    }
    numbers.push_back({name, number});
  }
  return numbers;
}

ClusterChanges ChangesOf(const PlanFlags& flags) {
  constexpr uint32_t kWeightMax = 1000;
  constexpr uint32_t kTokensMax = 4096;
  constexpr uint32_t kReplicasMax = 8;
  ClusterChanges changes;
  changes.add = flags.add;
  changes.remove = flags.remove;
  for (const std::string& value : flags.replace) {
    const auto [old, by] = Split("--replace", value, "OLD=NEW");
    changes.replace.push_back({old, by});
  }
  changes.weight = Numbers("--weight", flags.weight, "ID=WEIGHT", kWeightMax);
  for (const std::string& value : flags.zone) {
    const auto [node, zone] = Split("--zone", value, "ID=ZONE", /*may_be_empty=*/true);
    changes.zone.push_back({node, zone});
  }
  changes.tokens = Numbers("--tokens", flags.tokens, "ID=COUNT", kTokensMax);
  changes.keyspace_n = Numbers("--keyspace-n", flags.keyspace_n, "NAME=N", kReplicasMax);
  if (changes == ClusterChanges{}) {
    throw CLI::RequiredError(
        "at least one of --add, --remove, --replace, --weight, --zone, --tokens, --keyspace-n");
  }
  return changes;
}

std::string Decimals(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", number);
  return text;
}

void PrintChanges(const Session& session, const ClusterChanges& changes) {
  Table rows;
  for (const std::string& node : changes.add) rows.push_back({"  add", node, ""});
  for (const std::string& node : changes.remove) rows.push_back({"  remove", node, ""});
  for (const auto& each : changes.replace) rows.push_back({"  replace", each.old, "by " + each.by});
  for (const auto& each : changes.weight)
    rows.push_back({"  weight", each.name, std::to_string(each.number)});
  for (const auto& each : changes.zone) rows.push_back({"  zone", each.node, "'" + each.zone + "'"});
  for (const auto& each : changes.tokens)
    rows.push_back({"  tokens", each.name, std::to_string(each.number)});
  for (const auto& each : changes.keyspace_n)
    rows.push_back({"  replicas of keyspace", each.name, std::to_string(each.number)});
  session.Print(rows);
}

void PrintSentences(const Session& session, const std::string& title,
                    const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  session.Print(title);
  for (const std::string& sentence : sentences) session.Print("  " + sentence);
}

void PrintPlan(const Session& session, const ClusterPlan& plan) {
  session.Print("plan " + ToHex(plan.hash) + " for layout " + std::to_string(plan.base_epoch));
  PrintChanges(session, plan.changes);
  if (plan.moves.empty()) {
    session.Print(std::string("no data moves"));
  } else {
    PlannedMove all;
    Table rows = {{"FROM", "TO", "RANGES", "KEYS", "BYTES"}};
    const auto row = [&](const PlannedMove& move) {
      rows.push_back({move.from, move.to, std::to_string(move.ranges), std::to_string(move.keys),
                      std::to_string(move.bytes)});
    };
    for (const PlannedMove& move : plan.moves) {
      row(move);
      all.ranges += move.ranges;
      all.keys += move.keys;
      all.bytes += move.bytes;
    }
    all.from = "all";
    row(all);
    session.Print(rows);
  }
  session.Print(Table{{"LARGEST SHARE", "OWNED", "REPLICATED", "(1 is what its weight asks for)"},
                      {"before", Decimals(plan.before.owned), Decimals(plan.before.replicated), ""},
                      {"after", Decimals(plan.after.owned), Decimals(plan.after.replicated), ""}});
  PrintSentences(session, "warnings", plan.warnings);
  PrintSentences(session, "may be lost (cluster apply refuses, unless --force is given)", plan.loss);
}

// The nodes that are named by their address, by their ids.
absl::Status NameByIds(const Session& session, ClusterChanges& changes) {
  std::vector<std::string*> names;
  for (std::string& node : changes.add) names.push_back(&node);
  for (std::string& node : changes.remove) names.push_back(&node);
  for (auto& each : changes.replace) names.insert(names.end(), {&each.old, &each.by});
  for (auto& each : changes.weight) names.push_back(&each.name);
  for (auto& each : changes.zone) names.push_back(&each.node);
  for (auto& each : changes.tokens) names.push_back(&each.name);
  if (std::ranges::none_of(names, [](const std::string* name) { return IsAddress(*name); })) {
    return absl::OkStatus();
  }
  const auto info = session.Admin().ClusterStatus();
  if (!info.ok()) return info.status();
  for (std::string* name : names) {
    const auto id = IdOfAddress(*info, *name);
    if (!id.ok()) return id.status();
    *name = *id;
  }
  return absl::OkStatus();
}

void MakePlan(Session& session, const PlanFlags& flags) {
  ClusterChanges changes = ChangesOf(flags);
  if (const absl::Status named = NameByIds(session, changes); !named.ok()) {
    return session.Fail(named, Effect::kRead);
  }
  const auto plan = session.Admin().Plan(changes);
  if (!plan.ok()) return session.Fail(plan.status(), Effect::kRead);
  const Json json = PlanToJson(*plan);
  if (!flags.out.empty()) {
    std::ofstream file(flags.out, std::ios::binary | std::ios::trunc);
    if (!file) return session.Fail(kOtherFailure, "PERMISSION_DENIED", "cannot write " + flags.out);
    file << json.dump(2) << "\n";
    file.close();
    if (!file)
      return session.Fail(kOtherFailure, "DATA_LOSS", flags.out + " could not be written completely");
  }
  if (session.json) return session.Print(json);
  PrintPlan(session, *plan);
  session.Print(flags.out.empty() ? "nothing is changed; with --out FILE it can be applied"
                                  : "nothing is changed; gyre cluster apply " + flags.out + " does it");
}

// How many members have got their data.
void Show(const ClusterInfo& info, ProgressLine& progress) {
  if (info.active_layouts < 2) return;
  uint64_t members = 0;
  uint64_t synced = 0;
  for (const NodeStatus& node : info.nodes) {
    if (node.step.empty()) continue;
    ++members;
    if (node.step == "sync" || node.step == "sync-ack" || node.step == "done") ++synced;
  }
  const std::string counts = std::to_string(synced) + " of " + std::to_string(members);
  progress.Show(counts + " members have got their data", synced, members);
}

// Until the layout is the only active one on the node that answers, and the next change may come. OK, or why
// that cannot be told.
absl::Status AwaitRetirement(const Session& session, uint64_t epoch) {
  constexpr absl::Duration kLookEvery = absl::Milliseconds(300);
  constexpr absl::Duration kSilenceMax = absl::Minutes(1);
  const std::string applied = "layout " + std::to_string(epoch) + " is applied, but ";
  absl::Time answered_at = absl::Now();
  ProgressLine progress;
  while (true) {
    const auto moves = session.Admin().Moves();
    if (moves.ok()) {
      answered_at = absl::Now();
      if (moves->layout_epoch > epoch && moves->going_back) {
        return absl::AbortedError("layout " + std::to_string(epoch) +
                                  " was applied, and is gone back from: somebody aborted it");
      }
      if (moves->layout_epoch >= epoch && moves->finished) return absl::OkStatus();
      if (const auto info = session.Admin().ClusterStatus(); info.ok()) Show(*info, progress);
    } else if (absl::Now() - answered_at > kSilenceMax) {
      return absl::AbortedError(
          applied + "whether its data has moved cannot be seen: " + std::string(moves.status().message()));
    }
    Pause(kLookEvery);
  }
}

std::string ReadAll(std::istream& in) {
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void Apply(Session& session, const std::string& path, bool wait, bool force) {
  std::string text;
  if (path == "-") {
    text = ReadAll(std::cin);
  } else {
    std::ifstream file(path, std::ios::binary);
    if (!file) return session.FailUsage("cannot read " + path);
    text = ReadAll(file);
  }
  const auto plan = PlanFromJson(text);
  if (!plan.ok()) return session.FailUsage(path + ": " + std::string(plan.status().message()));
  const auto epoch = session.Admin().Apply(*plan, force);
  if (!epoch.ok()) return session.Fail(epoch.status(), Effect::kWrite);
  if (wait) {
    const absl::Status status = AwaitRetirement(session, *epoch);
    if (!status.ok()) return session.Fail(status, Effect::kRead);
  }
  if (session.json) return session.Print(Json{{"layout", *epoch}});
  session.Print("layout " + std::to_string(*epoch) +
                (wait ? std::string(" is applied, and all its data has moved")
                      : " is applied; gyre cluster moves shows how its data moves"));
}

}  // namespace

void AddPlanCommands(CLI::App& cluster, Session& session) {
  CLI::App* plan = cluster.add_subcommand(
      "plan", "what a change of the members or of N would move, and how even it would be; changes nothing");
  plan->footer(
      "An ID may be the beginning of a node's id that no other node has, or its address HOST:PORT. Nodes to "
      "be added are listed by\n"
      "gyre cluster status once they have announced themselves.");
  const auto flags = std::make_shared<PlanFlags>();
  const auto add = [&](const char* name, std::vector<std::string>& values, const char* form,
                       const char* help) {
    plan->add_option(name, values, help)->type_name(form)->allow_extra_args(false)->check(NotEmpty());
  };
  add("--add", flags->add, "ID", "a node that has announced itself becomes a member");
  add("--remove", flags->remove, "ID", "a member leaves, and what it holds goes to the others");
  add("--replace", flags->replace, "OLD=NEW", "a node takes over the tokens of a member, which leaves");
  add("--weight", flags->weight, "ID=W", "the share a member should have, relative to the others: 1 to 1000");
  add("--zone", flags->zone, "ID=Z", "members of one zone fail together");
  add("--tokens", flags->tokens, "ID=N", "how many tokens a member has: 1 to 4096");
  add("--keyspace-n", flags->keyspace_n, "NAME=N", "replicas of each key of a keyspace: 1 to 8");
  plan->add_option("--out", flags->out, "write the plan there, for gyre cluster apply")
      ->type_name("FILE")
      ->check(NotEmpty());
  plan->callback([&session, flags] { MakePlan(session, *flags); });

  struct ApplyFlags {
    std::string file;
    bool wait = false;
    bool force = false;
  };
  CLI::App* apply =
      cluster.add_subcommand("apply", "make a planned change; it must still be what the server computes");
  const auto how = std::make_shared<ApplyFlags>();
  apply->add_option("FILE", how->file, "what gyre cluster plan --out wrote; -: standard input")->required();
  apply->add_flag("--wait", how->wait, "until all data has moved");
  apply->add_flag(
      "--force", how->force,
      "although keys may be lost: nodes that leave and are down are given up, with what only they hold");
  apply->callback([&session, how] { Apply(session, how->file, how->wait, how->force); });
}

}  // namespace gyre::cli
