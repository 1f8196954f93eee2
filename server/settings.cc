// The table of gyred's settings, and how the text of a setting becomes its value.
#include "server/settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>

namespace gyre {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;
constexpr int64_t kGiB = 1024 * kMiB;

const std::vector<Setting>& AllSettings() {
  using Kind = SettingKind;
  using Value = SettingValue;
  // A value of 8 MiB leaves room for its siblings' frames and vectors in a message of 16 MiB.
  static const std::vector<Setting> table = {
      {"node.data_dir",
       Kind::kText,
       "gyre-data",
       1,
       4096,
       {},
       "directory of this node's identity and store; made on first start",
       [](Config& c, const Value& v) { c.node.data_dir = v.text; }},
      {"node.zone",
       Kind::kText,
       "",
       0,
       64,
       {},
       "nodes of one zone fail together; copies go to distinct zones while there are enough",
       [](Config& c, const Value& v) { c.node.zone = v.text; }},
      {"node.weight",
       Kind::kNumber,
       "1",
       1,
       1000,
       {},
       "share of the keys this node should own, relative to the others",
       [](Config& c, const Value& v) { c.node.weight = static_cast<uint32_t>(v.number); }},

      {"listen.client",
       Kind::kAddress,
       "127.0.0.1:7400",
       0,
       0,
       {},
       "where clients and operators are served",
       [](Config& c, const Value& v) { c.listen.client = v.text; }},
      {"listen.peer",
       Kind::kAddress,
       "127.0.0.1:7401",
       0,
       0,
       {},
       "where the other nodes are served",
       [](Config& c, const Value& v) { c.listen.peer = v.text; }},
      {"listen.http",
       Kind::kAddress,
       "127.0.0.1:7402",
       0,
       0,
       {},
       "where /metrics, /livez and /readyz are served",
       [](Config& c, const Value& v) { c.listen.http = v.text; }},
      {"listen.advertise_client",
       Kind::kAddressOrNothing,
       "",
       0,
       0,
       {},
       "where clients reach listen.client, if not by that address",
       [](Config& c, const Value& v) { c.listen.advertise_client = v.text; }},
      {"listen.advertise_peer",
       Kind::kAddressOrNothing,
       "",
       0,
       0,
       {},
       "where other nodes reach listen.peer, if not by that address",
       [](Config& c, const Value& v) { c.listen.advertise_peer = v.text; }},

      {"cluster.seeds",
       Kind::kAddresses,
       "",
       0,
       64,
       {},
       "peer addresses of some nodes of the cluster to find it by",
       [](Config& c, const Value& v) { c.cluster.seeds = v.list; }},
      {"cluster.bootstrap_expect",
       Kind::kNumber,
       "1",
       1,
       64,
       {},
       "how many nodes form the cluster when it is new; the same on each of them",
       [](Config& c, const Value& v) { c.cluster.bootstrap_expect = static_cast<int>(v.number); }},
      {"cluster.auto_join",
       Kind::kSwitch,
       "false",
       0,
       0,
       {},
       "whether nodes that are no members are added by themselves, one after the other, as if by a plan",
       [](Config& c, const Value& v) { c.cluster.auto_join = v.number == 1; }},

      {"storage.durability",
       Kind::kChoice,
       "disk",
       0,
       0,
       {"disk", "memory"},
       "what an acknowledged write survives: disk = loss of power, memory = a crash of the process only",
       [](Config& c, const Value& v) {
         c.storage.durability = v.number == 0 ? Durability::kDisk : Durability::kMemory;
       }},

      {"limits.value_bytes",
       Kind::kBytes,
       "1MiB",
       kKiB,
       8 * kMiB,
       {},
       "longest value",
       [](Config& c, const Value& v) { c.limits.value_bytes = static_cast<size_t>(v.number); }},
      {"limits.siblings",
       Kind::kNumber,
       "32",
       1,
       1024,
       {},
       "most siblings of one key",
       [](Config& c, const Value& v) { c.limits.siblings = static_cast<size_t>(v.number); }},
      {"limits.record_bytes",
       Kind::kBytes,
       "4MiB",
       65 * kKiB,
       12 * kMiB,
       {},
       "largest record: all siblings of a key together",
       [](Config& c, const Value& v) { c.limits.record_bytes = static_cast<size_t>(v.number); }},
      {"limits.requests_in_flight",
       Kind::kNumber,
       "16384",
       1,
       1'000'000,
       {},
       "requests worked on at a time; more are refused with RESOURCE_EXHAUSTED",
       [](Config& c, const Value& v) { c.limits.requests_in_flight = static_cast<size_t>(v.number); }},
      {"limits.hint_bytes",
       Kind::kBytes,
       "256MiB",
       0,
       1024 * kGiB,
       {},
       "hints held for other nodes; beyond, anti-entropy alone brings them what they missed",
       [](Config& c, const Value& v) { c.limits.hint_bytes = static_cast<uint64_t>(v.number); }},
      {"limits.disk_reserve_bytes",
       Kind::kBytes,
       "64MiB",
       0,
       1024 * kGiB,
       {},
       "free space below which writes are refused",
       [](Config& c, const Value& v) { c.limits.disk_reserve_bytes = static_cast<uint64_t>(v.number); }},
      {"limits.connections",
       Kind::kNumber,
       "10000",
       16,
       1'000'000,
       {},
       "connections of clients, and as many of peers; more are closed at once",
       [](Config& c, const Value& v) { c.limits.connections = static_cast<size_t>(v.number); }},
      {"limits.network_bytes",
       Kind::kBytes,
       "512MiB",
       64 * kMiB,
       1024 * kGiB,
       {},
       "memory for what has arrived from clients or leaves to them, and as much for peers; connections that "
       "would "
       "need more wait or are closed",
       [](Config& c, const Value& v) { c.limits.network_bytes = static_cast<size_t>(v.number); }},
      {"limits.clock_drift_ms",
       Kind::kMillis,
       "2000",
       1000,
       60'000,
       {},
       "how far the clocks of two nodes may be apart, in milliseconds",
       [](Config& c, const Value& v) { c.limits.clock_drift = std::chrono::milliseconds(v.number); }},

      {"security.ca",
       Kind::kText,
       "",
       0,
       4096,
       {},
       "file of the authorities (PEM) whose certificates are trusted; with it, certificate and key, TLS is "
       "on "
       "for clients and peers alike",
       [](Config& c, const Value& v) { c.security.ca = v.text; }},
      {"security.certificate",
       Kind::kText,
       "",
       0,
       4096,
       {},
       "file of this node's certificate and intermediates (PEM), with the URI gyre:node:ID; read again when "
       "it "
       "changes",
       [](Config& c, const Value& v) { c.security.certificate = v.text; }},
      {"security.key",
       Kind::kText,
       "",
       0,
       4096,
       {},
       "file of its key (PEM, without a password)",
       [](Config& c, const Value& v) { c.security.key = v.text; }},
      {"security.permissions",
       Kind::kTexts,
       "",
       0,
       4096,
       {},
       "what clients may do, each \"CLIENT KEYSPACE VERBS\": the verbs are read, write, delete and scan "
       "joined by "
       "+, and * stands for all clients or keyspaces; with TLS, what is not listed is denied",
       [](Config& c, const Value& v) { c.security.permissions = v.list; }},
      {"security.allow_insecure",
       Kind::kSwitch,
       "false",
       0,
       0,
       {},
       "whether to listen without TLS where other machines reach it: whoever does may read and write "
       "everything",
       [](Config& c, const Value& v) { c.security.allow_insecure = v.number == 1; }},

      {"log.level",
       Kind::kChoice,
       "info",
       0,
       0,
       {"debug", "info", "warning", "error"},
       "least severe line to log",
       [](Config& c, const Value& v) { c.log.level = static_cast<LogLevel>(v.number); }},
      {"log.format",
       Kind::kChoice,
       "text",
       0,
       0,
       {"text", "json"},
       "how the lines on stderr look",
       [](Config& c, const Value& v) { c.log.format = static_cast<LogFormat>(v.number); }},
  };
  return table;
}

std::optional<int64_t> ParseNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<int64_t> ParseBytes(std::string_view text) {
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {{"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB}};
  int64_t unit = 1;
  for (const auto& [suffix, bytes] : kUnits) {
    if (!text.ends_with(suffix)) continue;
    unit = bytes;
    text.remove_suffix(suffix.size());
    while (text.ends_with(' ')) text.remove_suffix(1);
  }
  const std::optional<int64_t> number = ParseNumber(text);
  if (!number || *number < 0 || *number > std::numeric_limits<int64_t>::max() / unit) return std::nullopt;
  return *number * unit;
}

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    if (comma + 1 == text.size()) parts.emplace_back();  // "a," has an empty second part
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

bool IsAddress(std::string_view text) { return ParseHostPort(text).ok(); }

// Takes a text apart; nullopt when it is nothing that `setting` takes.
std::optional<SettingValue> Understand(const Setting& setting, std::string_view text) {
  SettingValue value{.number = 0, .text = std::string(text), .list = {}};
  const auto within = [&](int64_t n) { return setting.min <= n && n <= setting.max; };
  switch (setting.kind) {
    case SettingKind::kText:
      if (!within(static_cast<int64_t>(text.size()))) return std::nullopt;
      if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c); }))
        return std::nullopt;
      return value;
    case SettingKind::kAddress:
      if (!IsAddress(text)) return std::nullopt;
      return value;
    case SettingKind::kAddressOrNothing:
      if (!text.empty() && !IsAddress(text)) return std::nullopt;
      return value;
    case SettingKind::kAddresses:
      value.list = Split(text);
      if (!within(static_cast<int64_t>(value.list.size()))) return std::nullopt;
      if (!std::all_of(value.list.begin(), value.list.end(), IsAddress)) return std::nullopt;
      return value;
    case SettingKind::kTexts:
      value.list = Split(text);
      if (!within(static_cast<int64_t>(value.list.size()))) return std::nullopt;
      if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c); }))
        return std::nullopt;
      return value;
    case SettingKind::kNumber:
    case SettingKind::kMillis:
    case SettingKind::kBytes: {
      const auto number = setting.kind == SettingKind::kBytes ? ParseBytes(text) : ParseNumber(text);
      if (!number || !within(*number)) return std::nullopt;
      value.number = *number;
      return value;
    }
    case SettingKind::kSwitch:
      if (text != "true" && text != "false") return std::nullopt;
      value.number = text == "true" ? 1 : 0;
      return value;
    case SettingKind::kChoice: {
      const auto choice = std::find(setting.choices.begin(), setting.choices.end(), text);
      if (choice == setting.choices.end()) return std::nullopt;
      value.number = choice - setting.choices.begin();
      return value;
    }
  }
  return std::nullopt;
}

std::string BytesText(int64_t bytes) {
  if (bytes != 0 && bytes % kGiB == 0) return std::to_string(bytes / kGiB) + "GiB";
  if (bytes != 0 && bytes % kMiB == 0) return std::to_string(bytes / kMiB) + "MiB";
  if (bytes != 0 && bytes % kKiB == 0) return std::to_string(bytes / kKiB) + "KiB";
  return std::to_string(bytes);
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

// How many characters must be changed, added or removed to make `b` of `a`.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const Setting> Settings() { return AllSettings(); }

const Setting* FindSetting(std::string_view name) {
  for (const Setting& setting : AllSettings()) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

std::string_view SectionOf(const Setting& setting) { return setting.name.substr(0, setting.name.find('.')); }

bool IsSection(std::string_view section) {
  return std::any_of(AllSettings().begin(), AllSettings().end(),
                     [&](const Setting& s) { return SectionOf(s) == section; });
}

absl::StatusOr<SettingValue> ParseSetting(const Setting& setting, std::string_view text) {
  if (auto value = Understand(setting, text)) return *std::move(value);
  return absl::InvalidArgumentError(std::string(setting.name) + " must be " + Expected(setting) + ", not " +
                                    Quoted(text));
}

std::string Expected(const Setting& setting) {
  const std::string range = " from " + std::to_string(setting.min) + " to " + std::to_string(setting.max);
  switch (setting.kind) {
    case SettingKind::kText:
      return "a text" + range + " bytes long, without control characters";
    case SettingKind::kAddress:
    case SettingKind::kAddressOrNothing:
      return "an address HOST:PORT";
    case SettingKind::kAddresses:
      return "a list of at most " + std::to_string(setting.max) + " addresses HOST:PORT";
    case SettingKind::kTexts:
      return "a list of at most " + std::to_string(setting.max) + " texts without control characters";
    case SettingKind::kNumber:
    case SettingKind::kMillis:
      return "a number" + range;
    case SettingKind::kBytes:
      return "a size from " + BytesText(setting.min) + " to " + BytesText(setting.max);
    case SettingKind::kSwitch:
      return "true or false";
    case SettingKind::kChoice:
      break;
  }
  std::string choices;
  for (const std::string_view choice : setting.choices) {
    choices += (choices.empty() ? "" : " or ") + Quoted(choice);
  }
  return choices;
}

std::string ToToml(const Setting& setting, std::string_view text) {
  const bool bare = setting.kind == SettingKind::kNumber || setting.kind == SettingKind::kMillis ||
                    setting.kind == SettingKind::kSwitch;
  if (bare) return std::string(text);
  if (setting.kind != SettingKind::kAddresses && setting.kind != SettingKind::kTexts) return Quoted(text);
  std::string list;
  for (const std::string& part : Split(text)) list += (list.empty() ? "" : ", ") + Quoted(part);
  return "[" + list + "]";
}

std::string EnvironmentName(std::string_view name) {
  std::string result = "GYRE_";
  for (const char c : name)
    result += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::string DidYouMean(std::string_view name) {
  constexpr size_t kNameBytesMax = 64;  // bounds the time it takes
  constexpr size_t kEditsMax = 3;
  if (name.size() > kNameBytesMax) return "";
  std::string_view best;
  size_t best_edits = kEditsMax + 1;
  for (const Setting& setting : AllSettings()) {
    const size_t edits = EditDistance(name, setting.name);
    if (edits < best_edits) {
      best = setting.name;
      best_edits = edits;
    }
  }
  return best.empty() ? "" : "; did you mean " + std::string(best) + "?";
}

}  // namespace gyre
