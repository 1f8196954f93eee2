// cluster moves: how data moves, and control over it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>

#include "client/cli/session.h"
#include "client/cli/text.h"

namespace gyre::cli {
namespace {

// What each member fetches. Of one that is away nothing is known.
struct AllMoves {
  ClusterInfo info;
  std::vector<NodeMoves> nodes;
  std::vector<std::string> away;
};

absl::StatusOr<AllMoves> MovesOfAll(const Session& session) {
  auto info = session.Admin().ClusterStatus();
  if (!info.ok()) return info.status();
  AllMoves all{.info = *std::move(info), .nodes = {}, .away = {}};
  for (const NodeStatus& node : all.info.nodes) {
    if (!node.member) continue;
    if (node.state != "up" || node.address.empty()) {
      all.away.push_back(node.id);
      continue;
    }
    auto moves = session.AdminOf(node.address).Moves();
    if (moves.ok()) {
      all.nodes.push_back(*std::move(moves));
    } else {
      all.away.push_back(node.id);  // it went away just now
    }
  }
  return all;
}

Json MoveJson(const RangeMove& move) {
  return {{"from", move.from},
          {"to", move.to},
          {"keyspace", move.keyspace},
          {"range", ToHex(move.begin) + ":" + ToHex(move.end)},
          {"keys_done", move.keys_done},
          {"keys_total", move.keys_total},
          {"bytes_done", move.bytes_done},
          {"eta_seconds", move.eta_seconds ? Json(*move.eta_seconds) : Json(nullptr)},
          {"state", move.state}};
}

// All ranges of one link.
struct Link {
  size_t ranges = 0;
  size_t ranges_done = 0;
  uint64_t keys_done = 0;
  uint64_t keys_total = 0;
  uint64_t bytes_done = 0;
  double eta_seconds = 0;
  bool eta_known = true;
  std::string state = "done";
};

void AddTo(Link& link, const RangeMove& move) {
  ++link.ranges;
  if (move.state == "done") ++link.ranges_done;
  link.keys_done += move.keys_done;
  link.keys_total += move.keys_total;
  link.bytes_done += move.bytes_done;
  link.eta_known = link.eta_known && move.eta_seconds.has_value();
  link.eta_seconds = std::max(link.eta_seconds, move.eta_seconds.value_or(0));
  if (move.state == "running" || link.state == "done") link.state = move.state;
}

std::string DurationText(double seconds) {
  const auto whole = static_cast<uint64_t>(std::ceil(seconds));
  if (whole < 60) return std::to_string(whole) + "s";
  if (whole < 3600) return std::to_string(whole / 60) + "m" + std::to_string(whole % 60) + "s";
  return std::to_string(whole / 3600) + "h" + std::to_string(whole / 60 % 60) + "m";
}

void PrintMoves(const Session& session, const AllMoves& all) {
  session.Print("layout " + std::to_string(all.info.layout_epoch) +
                (all.info.active_layouts > 1 ? ": its data moves" : ": no data moves"));
  std::map<std::pair<std::string, std::string>, Link> links;
  Table nodes = {{"NODE", "STEP", "BYTES/S AT MOST", ""}};
  for (const NodeMoves& node : all.nodes) {
    for (const RangeMove& move : node.moves) AddTo(links[{move.from, move.to}], move);
    std::string step;
    for (const NodeStatus& status : all.info.nodes) {
      if (status.id == node.node) step = status.step;
    }
    nodes.push_back({node.node, step.empty() ? "-" : step,
                     node.bytes_per_second == 0 ? "-" : std::to_string(node.bytes_per_second),
                     node.paused ? "paused" : ""});
  }
  for (const std::string& node : all.away) nodes.push_back({node, "-", "-", "cannot be asked"});
  session.Print(nodes);
  if (links.empty()) return;
  Table rows = {{"FROM", "TO", "RANGES", "KEYS", "BYTES", "ETA", "STATE"}};
  const auto of = [](uint64_t done, uint64_t total) {
    return std::to_string(done) + "/" + std::to_string(total);
  };
  for (const auto& [ends, link] : links) {
    rows.push_back({ends.first, ends.second, of(link.ranges_done, link.ranges),
                    of(link.keys_done, link.keys_total), std::to_string(link.bytes_done),
                    link.eta_known ? DurationText(link.eta_seconds) : "-", link.state});
  }
  session.Print(rows);
}

void Show(Session& session) {
  const auto all = MovesOfAll(session);
  if (!all.ok()) return session.Fail(all.status(), Effect::kRead);
  if (!session.json) return PrintMoves(session, *all);
  Json moves = Json::array();
  for (const NodeMoves& node : all->nodes) {
    for (const RangeMove& move : node.moves) moves.push_back(MoveJson(move));
  }
  session.Print(moves);
}

// Tells every member; all that can be reached are told, whoever cannot.
void Control(Session& session, const MovesControl& control) {
  const auto info = session.Admin().ClusterStatus();
  if (!info.ok()) return session.Fail(info.status(), Effect::kRead);
  std::string untold;
  for (const NodeStatus& node : info->nodes) {
    // Also who is no member yet, for a plan that adds it is what may be meant; but it may as well be gone.
    const bool told = !node.address.empty() && session.AdminOf(node.address).ControlMoves(control).ok();
    if (!told && node.member) {
      untold += (untold.empty() ? "" : ", ") + node.id;
    }
  }
  if (!untold.empty()) {
    return session.Fail(kOtherFailure, "UNAVAILABLE",
                        "all other members were told, but these could not be: " + untold +
                            "; tell them again when they are back");
  }
  Show(session);
}

void Abort(Session& session) {
  const auto epoch = session.Admin().AbortMove();
  if (!epoch.ok()) return session.Fail(epoch.status(), Effect::kWrite);
  if (session.json) return session.Print(Json{{"layout", *epoch}});
  session.Print("layout " + std::to_string(*epoch) + " goes back to the placement before");
}

uint64_t RateOf(const std::string& text) {
  uint64_t rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (error != std::errc() || end != text.data() + text.size() || rate == 0) {
    throw CLI::ValidationError("BYTES_PER_SECOND", "must be a whole number above 0, not \"" + text + "\"");
  }
  return rate;
}

}  // namespace

void AddMovesCommand(CLI::App& cluster, Session& session) {
  CLI::App* moves =
      cluster.add_subcommand("moves", "what moves because the layout changed, and how far it is");
  moves->require_subcommand(0, 1);
  moves->add_subcommand("pause", "fetch nothing until resumed; reads and writes go on")->callback([&session] {
    Control(session, {.paused = true});
  });
  moves->add_subcommand("resume", "go on after a pause")->callback([&session] {
    Control(session, {.paused = false});
  });
  moves->add_subcommand("abort", "go back to the placement before; needs a majority of the voters")
      ->callback([&session] { Abort(session); });
  CLI::App* rate = moves->add_subcommand("rate", "how much each node fetches at most");
  const auto text = std::make_shared<std::string>();
  rate->add_option("BYTES_PER_SECOND", *text, "of keys and records")->required();
  rate->callback([&session, text] { Control(session, {.bytes_per_second = RateOf(*text)}); });
  moves->callback([&session, moves] {
    if (moves->get_subcommands().empty()) Show(session);
  });
}

}  // namespace gyre::cli
