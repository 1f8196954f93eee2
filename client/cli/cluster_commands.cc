// cluster status, ring, digests, hints, repair.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <unistd.h>

#include "client/cli/pause.h"
#include "client/cli/progress.h"
#include "client/cli/session.h"
#include "client/cli/text.h"

namespace gyre::cli {
namespace {

constexpr double kBarCharacters = 40;  // of the whole ring

std::string Percent(double fraction) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f%%", 100 * fraction);
  return text.data();
}

Json NodeJson(const NodeStatus& node) {
  Json json = {{"id", node.id},
               {"address", node.address},
               {"zone", node.zone},
               {"weight", node.weight},
               {"state", node.state},
               {"state_ms", node.state_ms},
               {"member", node.member},
               {"tokens", node.tokens.size()},
               {"owned", node.owned},
               {"replicated", node.replicated},
               {"keys", node.keys},
               {"bytes", node.bytes},
               {"filling", node.filling},
               {"collectible", node.collectible},
               {"hints_held", node.hints_held},
               {"hints_owed", node.hints_owed},
               {"version", node.version}};
  if (!node.step.empty()) json["step"] = node.step;
  return json;
}

Json StableCutJson(const StableCutInfo& cut) {
  Json blockers = Json::array();
  for (const auto& blocker : cut.blocked_by)
    blockers.push_back({{"node", blocker.node}, {"why", blocker.why}});
  Json lag;
  if (cut.lag_ms) lag = static_cast<double>(*cut.lag_ms) / 1000;
  return {{"lag_seconds", lag}, {"blocked_by", blockers}};
}

void PrintStableCut(Session& session, const StableCutInfo& cut) {
  std::string text = "deletes are collected up to ";
  text += cut.lag_ms ? std::to_string(*cut.lag_ms / 1000) + " s ago" : "no time yet";
  for (const auto& blocker : cut.blocked_by) text += "\n  held back by " + blocker.node + ": " + blocker.why;
  session.Print(text);
}

// "up", "up, filling", "down 12s", "up, step sync".
std::string StateText(const NodeStatus& node) {
  std::string text = node.state;
  if (node.member && node.state != "up") text += " " + std::to_string(node.state_ms / 1000) + "s";
  if (!node.step.empty()) text += ", step " + node.step;
  return node.filling ? text + ", filling" : text;
}

void Status(Session& session) {
  const auto info = session.Admin().ClusterStatus();
  if (!info.ok()) return session.Fail(info.status(), Effect::kRead);
  if (session.json) {
    Json nodes = Json::array();
    for (const NodeStatus& node : info->nodes) nodes.push_back(NodeJson(node));
    return session.Print(Json{{"cluster", ToHex(info->cluster_id)},
                              {"layout", {{"version", info->layout_epoch}, {"digest", info->layout_digest}}},
                              {"active_layouts", info->active_layouts},
                              {"nodes", nodes},
                              {"converged", info->converged},
                              {"stable_cut", StableCutJson(info->stable_cut)}});
  }
  session.Print("cluster " + (info->cluster_id == 0 ? "not formed yet" : ToHex(info->cluster_id)) +
                "  layout " + std::to_string(info->layout_epoch) + "  " +
                (info->active_layouts > 1 ? "its data moves  " : "") +
                (info->converged ? "converged" : "not converged"));
  Table rows = {{"NODE", "ADDRESS", "ZONE", "STATE", "TOKENS", "OWNED", "KEYS", "COLLECTIBLE", "BYTES",
                 "HINTS HELD", "OWED"}};
  for (const NodeStatus& node : info->nodes) {
    rows.push_back({node.id, node.address, node.zone.empty() ? "-" : node.zone, StateText(node),
                    std::to_string(node.tokens.size()), Percent(node.owned), std::to_string(node.keys),
                    std::to_string(node.collectible), std::to_string(node.bytes),
                    std::to_string(node.hints_held), std::to_string(node.hints_owed)});
  }
  session.Print(rows);
  PrintStableCut(session, info->stable_cut);
}

// Until interrupted, or nobody reads any more. On a terminal the newest stands alone.
void Watch(Session& session) {
  constexpr absl::Duration kLookEvery = absl::Seconds(2);
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  while (std::ferror(stdout) == 0) {
    if (terminal) session.PrintBytes("\x1b[H\x1b[2J");
    Status(session);
    std::fflush(stdout);
    Pause(kLookEvery);
  }
}

void RingOf(Session& session) {
  const auto info = session.Admin().ClusterStatus();
  if (!info.ok()) return session.Fail(info.status(), Effect::kRead);
  if (session.json) {
    Json members = Json::array();
    for (const NodeStatus& node : info->nodes) {
      if (!node.member) continue;
      Json tokens = Json::array();
      for (const uint64_t token : node.tokens) tokens.push_back(ToHex(token));
      members.push_back({{"id", node.id},
                         {"address", node.address},
                         {"zone", node.zone},
                         {"weight", node.weight},
                         {"owned", node.owned},
                         {"tokens", tokens}});
    }
    return session.Print(Json{{"layout", info->layout_epoch}, {"members", members}});
  }
  Table rows = {{"NODE", "ADDRESS", "TOKENS", "OWNED", ""}};
  for (const NodeStatus& node : info->nodes) {
    if (!node.member) continue;
    rows.push_back({node.id, node.address, std::to_string(node.tokens.size()), Percent(node.owned),
                    std::string(static_cast<size_t>(node.owned * kBarCharacters + .5), '#')});
  }
  session.Print(rows);
}

void Digests(Session& session) {
  const auto info = session.Admin().ClusterStatus();
  if (!info.ok()) return session.Fail(info.status(), Effect::kRead);
  Json all = Json::array();
  Table rows = {{"NODE", "KEYSPACE", "RANGE", "SUM"}};
  for (const NodeStatus& node : info->nodes) {
    if (!node.member) continue;
    const auto digests = session.AdminOf(node.address).Digests("");
    if (!digests.ok()) {
      return session.Fail(absl::Status(digests.status().code(),
                                       "node " + node.id + ": " + std::string(digests.status().message())),
                          Effect::kRead);
    }
    for (const RangeDigest& digest : *digests) {
      const std::string range = ToHex(digest.begin) + ":" + ToHex(digest.end);
      all.push_back(
          {{"node", digest.node}, {"keyspace", digest.keyspace}, {"range", range}, {"sum", digest.sum}});
      rows.push_back(
          {digest.node, digest.keyspace, range, digest.sum.empty() ? "(being recounted)" : digest.sum});
    }
  }
  if (session.json) return session.Print(all);
  session.Print(rows);
}

// The sums over all members. Each compares with those above it, so that all of them must be asked.
absl::StatusOr<RepairTotals> RepairAll(Session& session, const ClusterInfo& info,
                                       AdminClient::Repairing what) {
  RepairTotals all;
  ProgressLine progress;
  const auto members = static_cast<uint64_t>(std::ranges::count_if(info.nodes, &NodeStatus::member));
  uint64_t asked = 0;
  for (const NodeStatus& node : info.nodes) {
    if (!node.member) continue;
    if (what == AdminClient::Repairing::kStartAndWait)
      progress.Show("repairing node " + node.id, asked++, members);
    const auto totals = session.AdminOf(node.address).Repair(what);
    if (!totals.ok()) {
      return absl::Status(totals.status().code(),
                          "node " + node.id + ": " + std::string(totals.status().message()));
    }
    all.unequal_ranges += totals->unequal_ranges;
    all.ranges += totals->ranges;
    all.records_compared += totals->records_compared;
    all.records_sent += totals->records_sent;
    all.bytes_sent += totals->bytes_sent;
    all.hash_bytes += totals->hash_bytes;
  }
  return all;
}

void Repair(Session& session, bool wait) {
  using Repairing = AdminClient::Repairing;
  const auto info = session.Admin().ClusterStatus();
  if (!info.ok()) return session.Fail(info.status(), Effect::kRead);
  const auto before = RepairAll(session, *info, Repairing::kLook);
  if (!before.ok()) return session.Fail(before.status(), Effect::kRead);
  const auto begun = RepairAll(session, *info, wait ? Repairing::kStartAndWait : Repairing::kStart);
  if (!begun.ok()) return session.Fail(begun.status(), Effect::kRead);
  const auto after = RepairAll(session, *info, Repairing::kLook);
  if (!after.ok()) return session.Fail(after.status(), Effect::kRead);
  const Json done = {{"ranges", after->ranges - before->ranges},
                     {"records_compared", after->records_compared - before->records_compared},
                     {"records_sent", after->records_sent - before->records_sent},
                     {"bytes_sent", after->bytes_sent - before->bytes_sent},
                     {"hash_bytes", after->hash_bytes - before->hash_bytes}};
  if (session.json) return session.Print(done);
  if (!wait) return session.Print(std::string("repair has begun; --wait shows what it did"));
  Table rows;
  for (const auto& [name, value] : done.items()) rows.push_back({name, value.dump()});
  session.Print(rows);
}

// What each member that can be reached holds for others. What one that is away holds is not known.
absl::StatusOr<HolderHints> HintsOfAll(Session& session, bool wait) {
  const auto info = session.Admin().ClusterStatus();
  if (!info.ok()) return info.status();
  HolderHints all{.counted = true, .hints = {}};
  for (const NodeStatus& node : info->nodes) {
    if (!node.member) continue;
    if (node.state != "up") {
      all.counted = false;
      continue;
    }
    const auto held = session.AdminOf(node.address).Hints(wait);
    if (!held.ok()) {
      return absl::Status(held.status().code(),
                          "node " + node.id + ": " + std::string(held.status().message()));
    }
    all.counted = all.counted && held->counted;
    all.hints.insert(all.hints.end(), held->hints.begin(), held->hints.end());
  }
  return all;
}

// Whether all that was held at `begin` is delivered: nothing is held any more, or as much was delivered
// since.
bool AllDelivered(const HolderHints& begin, const HolderHints& now) {
  if (!begin.counted || !now.counted) return false;
  return std::ranges::all_of(now.hints, [&](const HintsHeld& held) {
    if (held.hints == 0) return true;
    const auto before = std::ranges::find_if(
        begin.hints, [&](const HintsHeld& b) { return b.holder == held.holder && b.node == held.node; });
    return before == begin.hints.end() || held.delivered >= before->delivered + before->hints;
  });
}

uint64_t Delivered(const HolderHints& all) {
  uint64_t delivered = 0;
  for (const HintsHeld& held : all.hints) delivered += held.delivered;
  return delivered;
}

void Hints(Session& session, bool wait) {
  constexpr std::chrono::minutes kWithoutProgress{1};
  auto begin = HintsOfAll(session, false);
  auto now = begin;
  auto progress_at = std::chrono::steady_clock::now();
  while (wait && now.ok() && !AllDelivered(*begin, *now)) {
    if (std::chrono::steady_clock::now() - progress_at > kWithoutProgress) {
      return session.Fail(
          absl::UnavailableError("no hint was delivered for a minute: is a node down? Look with: gyre "
                                 "cluster status"),
          Effect::kRead);
    }
    auto next = HintsOfAll(session, true);
    if (next.ok() && Delivered(*next) != Delivered(*now)) progress_at = std::chrono::steady_clock::now();
    now = std::move(next);
    if (now.ok() && !begin->counted) begin = now;
  }
  if (!now.ok()) return session.Fail(now.status(), Effect::kRead);
  Json pairs = Json::array();
  Table rows = {{"HOLDER", "FOR", "HINTS", "BYTES", "DELIVERED"}};
  for (const HintsHeld& held : now->hints) {
    pairs.push_back({{"holder", held.holder},
                     {"node", held.node},
                     {"hints", held.hints},
                     {"bytes", held.bytes},
                     {"delivered", held.delivered}});
    rows.push_back({held.holder, held.node, std::to_string(held.hints), std::to_string(held.bytes),
                    std::to_string(held.delivered)});
  }
  if (session.json) return session.Print(pairs);
  session.Print(rows);
}

}  // namespace

void AddClusterCommands(CLI::App& app, Session& session) {
  CLI::App* cluster = app.add_subcommand("cluster", "the cluster as a whole");
  cluster->require_subcommand(1);
  CLI::App* status =
      cluster->add_subcommand("status", "members, their state and share, and whether all is converged");
  const auto watch = std::make_shared<bool>(false);
  status->add_flag("--watch", *watch, "again every two seconds, until interrupted");
  status->callback([&session, watch] { *watch ? Watch(session) : Status(session); });
  cluster->add_subcommand("ring", "members and tokens")->callback([&session] { RingOf(session); });
  cluster->add_subcommand("digests", "the Merkle sum of each range on each member: equal sums, equal data")
      ->callback([&session] { Digests(session); });
  CLI::App* hints = cluster->add_subcommand("hints", "what members hold for others that missed writes");
  const auto wait_hints = std::make_shared<bool>(false);
  hints->add_flag("--wait", *wait_hints, "until all hints of now are delivered");
  hints->callback([&session, wait_hints] { Hints(session, *wait_hints); });
  CLI::App* repair = cluster->add_subcommand("repair", "compare all replicas now, and make them equal");
  const auto wait = std::make_shared<bool>(false);
  repair->add_flag("--wait", *wait, "until what differs is made equal");
  repair->callback([&session, wait] { Repair(session, *wait); });
  AddPlanCommands(*cluster, session);
  AddMovesCommand(*cluster, session);
  AddCanRestartCommand(*cluster, session);
  AddBackupCommands(*cluster, session);
}

}  // namespace gyre::cli
