// cluster can-restart: whether every key keeps its quorum while one node is away.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "client/cli/node_name.h"
#include "client/cli/options.h"
#include "client/cli/pause.h"
#include "client/cli/session.h"
#include "client/cli/text.h"
#include "ring/ring.h"

namespace gyre::cli {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(500);

// How many of `n` replicas have to answer. What is unset is a quorum.
size_t Needed(const std::optional<Replicas>& replicas, size_t n) {
  if (!replicas) return n / 2 + 1;
  switch (replicas->kind()) {
    case Replicas::Kind::kCount:
      return static_cast<size_t>(std::max<int64_t>(replicas->count(), 1));
    case Replicas::Kind::kOne:
      return 1;
    case Replicas::Kind::kQuorum:
      return n / 2 + 1;
    case Replicas::Kind::kAll:
      return n;
  }
  return n;
}

// Why a member cannot stand in for the one that is restarted; "" when it can.
std::string Unfit(const NodeStatus& node) {
  if (node.state != "up") return "is " + node.state;
  if (node.filling) return "fills its store and answers no reads";
  if (node.hints_owed > 0)
    return "lacks " + std::to_string(node.hints_owed) + " hints that others hold for it";
  return "";
}

struct Needs {
  std::string keyspace;
  size_t replicas = 0;  // that hold a key
  size_t answers = 0;   // that reads and writes need, whichever need more
};

std::vector<Needs> NeedsOf(const ClusterInfo& info, size_t members) {
  std::vector<Needs> needs;
  for (const KeyspaceInfo& keyspace : info.keyspaces) {
    const size_t replicas = std::min<size_t>(keyspace.n, members);
    needs.push_back(
        {keyspace.name, replicas, std::max(Needed(keyspace.r, keyspace.n), Needed(keyspace.w, keyspace.n))});
  }
  return needs;
}

absl::StatusOr<Ring> RingOf(const ClusterInfo& info) {
  std::vector<Member> members;
  for (const NodeStatus& node : info.nodes) {
    if (!node.member || node.tokens.empty()) continue;
    Member member{.id = {}, .zone = node.zone, .weight = node.weight, .tokens = {}};
    if (!ParseNodeId(node.id, member.id)) return absl::InternalError("the id " + node.id + " is none");
    for (const uint64_t token : node.tokens) member.tokens.push_back(Token{token});
    members.push_back(std::move(member));
  }
  return Ring::Build(std::move(members));
}

// Nothing when the node may go; else why not, a sentence each.
absl::StatusOr<std::vector<std::string>> Obstacles(const ClusterInfo& info, const std::string& id) {
  std::vector<std::string> why;
  if (info.active_layouts > 1) {
    why.push_back("data moves, and whoever moves it should not go away: see gyre cluster moves");
    return why;
  }
  const auto ring = RingOf(info);
  if (!ring.ok()) return ring.status();
  std::set<MemberIndex> away;
  std::string others;
  for (const NodeStatus& node : info.nodes) {
    NodeId parsed;
    if (!node.member || !ParseNodeId(node.id, parsed)) continue;
    const int index = ring->IndexOf(parsed);
    const std::string unfit = Unfit(node);
    if (index < 0 || (node.id != id && unfit.empty())) continue;
    away.insert(static_cast<MemberIndex>(index));
    if (node.id != id) others += "; node " + node.id + " " + unfit;
  }
  for (const Needs& needs : NeedsOf(info, ring->members().size())) {
    size_t fewest = needs.replicas;
    for (size_t arc = 0; arc < ring->arc_count(); ++arc) {
      const auto primaries = ring->PrimariesOfArc(arc, needs.replicas);
      const auto left = static_cast<size_t>(
          std::ranges::count_if(primaries, [&](MemberIndex member) { return !away.contains(member); }));
      fewest = std::min(fewest, left);
    }
    if (fewest >= needs.answers) continue;
    why.push_back("keyspace \"" + needs.keyspace + "\" needs " + std::to_string(needs.answers) + " of its " +
                  std::to_string(needs.replicas) + " replicas, and some keys would have " +
                  std::to_string(fewest) + others);
  }
  return why;
}

// The one member of that address, or whose id begins so.
absl::StatusOr<std::string> MemberOf(const ClusterInfo& info, const std::string& name) {
  const auto beginning = IdOfAddress(info, name);
  if (!beginning.ok()) return beginning.status();
  std::vector<std::string> found;
  for (const NodeStatus& node : info.nodes) {
    if (node.member && node.id.starts_with(*beginning)) found.push_back(node.id);
  }
  if (found.size() == 1) return found.front();
  return absl::InvalidArgumentError(
      (found.empty() ? "no member's id begins with \"" : "several members' ids begin with \"") + name +
      "\": see gyre cluster status");
}

std::string Join(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : "; ") + sentence;
  return text;
}

void CanRestart(Session& session, const std::string& beginning, bool wait) {
  std::string told;
  for (;;) {
    const auto info = session.Admin().ClusterStatus();
    std::string id;
    std::vector<std::string> why;
    if (info.ok()) {
      const auto member = MemberOf(*info, beginning);
      if (!member.ok()) return session.Fail(member.status(), Effect::kRead);
      id = *member;
      auto obstacles = Obstacles(*info, id);
      if (!obstacles.ok()) return session.Fail(obstacles.status(), Effect::kRead);
      why = *std::move(obstacles);
    } else if (!wait) {
      return session.Fail(info.status(), Effect::kRead);
    } else {
      why = {std::string(info.status().message())};
    }
    if (why.empty()) {
      if (session.json) return session.Print(Json{{"node", id}, {"can_restart", true}, {"why_not", why}});
      return session.Print("node " + id + " can be restarted: every key keeps its quorum");
    }
    if (!wait) {
      if (session.json) {
        session.Print(Json{{"node", id}, {"can_restart", false}, {"why_not", why}});
        session.exit_code = kOtherFailure;
        return;
      }
      return session.Fail(kOtherFailure, "FAILED_PRECONDITION",
                          "node " + id + " should not be restarted now: " + Join(why));
    }
    if (Join(why) != told) std::fprintf(stderr, "gyre: waiting: %s\n", Join(why).c_str());
    told = Join(why);
    Pause(kLookEvery);
  }
}

}  // namespace

void AddCanRestartCommand(CLI::App& cluster, Session& session) {
  CLI::App* command = cluster.add_subcommand(
      "can-restart", "whether every key keeps its quorum without that node: exit 0, or 1 and why not");
  const auto id = std::make_shared<std::string>();
  const auto wait = std::make_shared<bool>(false);
  command->add_option("ID", *id, "of the node, its beginning, or HOST:PORT")->required()->check(NotEmpty());
  command->add_flag("--wait", *wait, "until it is so, however long that takes");
  command->callback([&session, id, wait] { CanRestart(session, *id, *wait); });
}

}  // namespace gyre::cli
