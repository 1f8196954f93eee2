// Reads gyred's settings: files, then the environment over them, then flags over both.
#include "server/config.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <toml++/toml.h>

#include "server/security/permissions.h"
#include "server/settings.h"

namespace gyre {
namespace {

// What a setting was given as, and where.
struct Given {
  std::string text;
  std::string where;  // "default", "gyred.toml:7", "environment GYRE_…", "flag --…"
};
using GivenSettings = std::map<std::string_view, Given>;  // by the names in the table

absl::Status Wrong(const std::string& where, const std::string& what) {
  return absl::InvalidArgumentError(where + ": " + what);
}

absl::Status Give(GivenSettings& given, const Setting& setting, std::string text, std::string where) {
  if (const auto value = ParseSetting(setting, text); !value.ok()) {
    return Wrong(where, std::string(value.status().message()));
  }
  given[setting.name] = {std::move(text), std::move(where)};
  return absl::OkStatus();
}

GivenSettings Defaults() {
  GivenSettings given;
  for (const Setting& setting : Settings()) given[setting.name] = {std::string(setting.initial), "default"};
  return given;
}

// The text of one value of a file, or nullopt when its type is not what `kind` is written as.
std::optional<std::string> TextOf(SettingKind kind, const toml::node& node) {
  const bool number =
      kind == SettingKind::kNumber || kind == SettingKind::kMillis || kind == SettingKind::kBytes;
  const bool text = kind != SettingKind::kNumber && kind != SettingKind::kMillis &&
                    kind != SettingKind::kAddresses && kind != SettingKind::kTexts &&
                    kind != SettingKind::kSwitch;
  if (kind == SettingKind::kSwitch && node.is_boolean()) return node.as_boolean()->get() ? "true" : "false";
  if (number && node.is_integer()) return std::to_string(node.as_integer()->get());
  if (text && node.is_string()) return node.as_string()->get();
  if ((kind != SettingKind::kAddresses && kind != SettingKind::kTexts) || !node.is_array())
    return std::nullopt;
  std::string list;
  for (const toml::node& element : *node.as_array()) {
    if (!element.is_string()) return std::nullopt;
    const std::string& one = element.as_string()->get();
    if (one.empty() || one.find(',') != std::string::npos) return std::nullopt;  // it would be none, or two
    list += (list.empty() ? "" : ",") + one;
  }
  return list;
}

std::string_view WrittenAs(SettingKind kind) {
  switch (kind) {
    case SettingKind::kNumber:
    case SettingKind::kMillis:
      return "a number without quotes";
    case SettingKind::kBytes:
      return "a number, or a quoted one with KiB, MiB or GiB";
    case SettingKind::kAddresses:
    case SettingKind::kTexts:
      return "a list of quoted texts, none of them empty or with a comma";
    case SettingKind::kSwitch:
      return "true or false without quotes";
    default:
      return "a quoted text";
  }
}

absl::Status ReadSection(const std::string& file, std::string_view section, const toml::table& table,
                         GivenSettings& given) {
  for (const auto& [key, node] : table) {
    const std::string name = std::string(section) + "." + std::string(key.str());
    const std::string where = file + ":" + std::to_string(key.source().begin.line);
    const Setting* const setting = FindSetting(name);
    if (setting == nullptr) return Wrong(where, "there is no setting " + name + DidYouMean(name));
    std::optional<std::string> text = TextOf(setting->kind, node);
    if (!text) return Wrong(where, name + " is written as " + std::string(WrittenAs(setting->kind)));
    if (auto status = Give(given, *setting, *std::move(text), where); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadFile(const std::string& file, GivenSettings& given) {
  constexpr size_t kFileBytesMax = 1024 * 1024;
  std::ifstream in(file, std::ios::binary);
  std::string content(kFileBytesMax + 1, '\0');
  if (!in) return Wrong(file, std::string("the configuration cannot be opened: ") + std::strerror(errno));
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (in.bad()) return Wrong(file, std::string("the configuration cannot be read: ") + std::strerror(errno));
  content.resize(static_cast<size_t>(in.gcount()));
  if (content.size() > kFileBytesMax) return Wrong(file, "the configuration is longer than 1 MiB");

  toml::table root;
  try {
    root = toml::parse(content);
  } catch (const toml::parse_error& error) {
    return Wrong(file + ":" + std::to_string(error.source().begin.line), std::string(error.description()));
  }
  for (const auto& [key, node] : root) {
    const std::string where = file + ":" + std::to_string(key.source().begin.line);
    const std::string name(key.str());
    if (!node.is_table())
      return Wrong(where, "there is no setting " + name + "; settings stand in a [section]");
    if (node.as_table()->empty() && !IsSection(name))
      return Wrong(where, "there is no section [" + name + "]");
    if (auto status = ReadSection(file, name, *node.as_table(), given); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Variables that start with GYRE_ and are not ours: those of the command line `gyre`, and those that
// Kubernetes puts beside a service called gyre or gyre-….
bool BelongsToOthers(const std::string& variable) {
  constexpr size_t kNameBytesMax = 256;  // bounds the stack that the expression takes
  if (variable.size() > kNameBytesMax) return false;
  static const std::regex others(
      "GYRE_(ENDPOINTS|KEYSPACE|OUTPUT|TIMEOUT|CA|CERT|KEY)|"
      "GYRE_(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_[0-9]+_(TCP|UDP)(_.*)?)");
  return std::regex_match(variable, others);
}

absl::Status ReadEnvironment(std::span<const std::string> environment, GivenSettings& given) {
  for (const std::string& entry : environment) {
    const std::string variable = entry.substr(0, entry.find('='));
    if (!variable.starts_with("GYRE_") || variable.size() == entry.size()) continue;
    const Setting* setting = nullptr;
    for (const Setting& candidate : Settings()) {
      if (EnvironmentName(candidate.name) == variable) setting = &candidate;
    }
    const std::string where = "environment " + variable;
    if (setting != nullptr) {
      if (auto status = Give(given, *setting, entry.substr(variable.size() + 1), where); !status.ok())
        return status;
    } else if (!BelongsToOthers(variable)) {
      return Wrong(where, "there is no such setting; `gyred --help` lists all");
    }
  }
  return absl::OkStatus();
}

// A command line, taken apart.
struct Flags {
  std::vector<std::string> files;
  std::vector<std::pair<std::string, std::string>> settings;
  std::string print;  // the flag among --help, --version, --print-…, or nothing
};

absl::StatusOr<Flags> ReadFlags(std::span<const std::string> arguments) {
  Flags flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "--version" || argument == "--print-config" ||
        argument == "--print-identity") {
      if (flags.print != "--help") flags.print = argument;
      continue;
    }
    if (!argument.starts_with("--")) {
      return absl::InvalidArgumentError("argument " + argument +
                                        ": gyred takes flags only; try `gyred --help`");
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (name != "config" && FindSetting(name) == nullptr) {
      return Wrong("flag --" + name, "there is no setting " + name + DidYouMean(name));
    }
    if (equals == std::string::npos && i + 1 == arguments.size()) {
      return Wrong("flag --" + name, "it needs a value: --" + name + "=VALUE");
    }
    const std::string value = equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
    if (name == "config") {
      flags.files.push_back(value);
    } else {
      flags.settings.emplace_back(name, value);
    }
  }
  return flags;
}

bool IsWildcard(std::string_view address) {
  const auto parts = ParseHostPort(address);
  return parts.ok() && (parts->host == "0.0.0.0" || parts->host == "::" || parts->host == "0");
}

// An address that others are told: by default the one listened on, which must then be one they can reach.
absl::Status Advertise(GivenSettings& given, std::string_view advertised, std::string_view listened) {
  Given& told = given[advertised];
  const Given& own = given[listened];
  if (told.text.empty()) told = {own.text, "as " + std::string(listened)};
  if (!IsWildcard(told.text)) return absl::OkStatus();
  return Wrong(told.where == "as " + std::string(listened) ? own.where : told.where,
               std::string(advertised) + " must be set to an address that others reach, because " +
                   told.text + " is none");
}

bool IsLoopback(std::string_view address) {
  const auto parts = ParseHostPort(address);
  return parts.ok() &&
         (parts->host.starts_with("127.") || parts->host == "::1" || parts->host == "localhost");
}

// TLS is whole or off; and off only where nobody else is, or where an operator says that this is meant.
absl::Status CheckSecurity(const GivenSettings& given, const Config& config) {
  constexpr std::string_view kFiles[] = {"security.ca", "security.certificate", "security.key"};
  for (const std::string_view set : kFiles) {
    for (const std::string_view unset : kFiles) {
      if (given.at(set).text.empty() || !given.at(unset).text.empty()) continue;
      return Wrong(given.at(set).where, std::string(set) + " is set and " + std::string(unset) +
                                            " is not: TLS needs security.ca, security.certificate and "
                                            "security.key");
    }
  }
  if (const auto parsed = Permissions::Parse(config.security.permissions); !parsed.ok()) {
    return Wrong(given.at("security.permissions").where,
                 "security.permissions: " + std::string(parsed.status().message()));
  }
  if (config.security.on() || config.security.allow_insecure) return absl::OkStatus();
  for (const std::string_view listener : {"listen.client", "listen.peer"}) {
    if (IsLoopback(given.at(listener).text)) continue;
    return Wrong(
        given.at(listener).where,
        std::string(listener) + " is " + given.at(listener).text +
            ", which other machines reach, and without TLS all of them may read and write everything: "
            "set security.ca, security.certificate and security.key, or security.allow_insecure = true");
  }
  return absl::OkStatus();
}

// The rules that hold between settings.
absl::Status CheckTogether(GivenSettings& given, const Config& config) {
  if (auto status = Advertise(given, "listen.advertise_client", "listen.client"); !status.ok()) return status;
  if (auto status = Advertise(given, "listen.advertise_peer", "listen.peer"); !status.ok()) return status;
  if (auto status = CheckSecurity(given, config); !status.ok()) return status;
  constexpr std::string_view kListeners[][2] = {
      {"listen.client", "listen.peer"}, {"listen.client", "listen.http"}, {"listen.peer", "listen.http"}};
  for (const auto& [a, b] : kListeners) {
    if (given[a].text != given[b].text) continue;
    return Wrong(given[b].where,
                 std::string(b) + " must differ from " + std::string(a) + ": both are " + given[a].text);
  }
  constexpr size_t kRoom = 64 * 1024;  // for versions and framing beside one value
  if (config.limits.record_bytes < config.limits.value_bytes + kRoom) {
    return Wrong(given["limits.record_bytes"].where,
                 "limits.record_bytes must be at least limits.value_bytes and 64KiB more: it is " +
                     std::to_string(config.limits.record_bytes) + ", the value " +
                     std::to_string(config.limits.value_bytes) + " (" + given["limits.value_bytes"].where +
                     ")");
  }
  return absl::OkStatus();
}

void StoreAll(const GivenSettings& given, Config& config) {
  for (const Setting& setting : Settings())
    setting.store(config, *ParseSetting(setting, given.at(setting.name).text));
}

// A configuration file with every setting, each line saying where its value came from.
std::string PrintConfig(const GivenSettings& given) {
  constexpr size_t kCommentColumn = 44;
  std::string text;
  std::string_view section;
  for (const Setting& setting : Settings()) {
    if (SectionOf(setting) != section) {
      text += (section.empty() ? "[" : "\n[") + std::string(SectionOf(setting)) + "]\n";
      section = SectionOf(setting);
    }
    const Given& value = given.at(setting.name);
    std::string line =
        std::string(setting.name.substr(section.size() + 1)) + " = " + ToToml(setting, value.text);
    line.resize(std::max(line.size() + 1, kCommentColumn), ' ');
    text += line + "# " + value.where + "\n";
  }
  return text;
}

std::string Help() {
  std::string text =
      "usage: gyred [--config FILE]... [--SECTION.NAME=VALUE]...\n"
      "\n"
      "One node of a Gyre cluster. It serves until SIGTERM, then drains and exits 0.\n"
      "\n"
      "  --config FILE    read settings from a TOML file; given again, the later file wins\n"
      "  --print-config   print the effective settings and where each came from\n"
      "  --print-identity print this node's id, made now if it is new: its certificate names it\n"
      "  --version        print the version\n"
      "  --help           print this\n"
      "\n"
      "A setting stands in its [section] of a file, or in the environment as GYRE_SECTION_NAME, or on the "
      "command\n"
      "line as --section.name=VALUE (a list is joined by commas). Flags win over the environment, that over "
      "files.\n";
  for (const Setting& setting : Settings()) {
    text += "\n  " + std::string(setting.name) + "\n      " + std::string(setting.help) + "\n      " +
            Expected(setting) + "; default " + ToToml(setting, setting.initial) + "\n";
  }
  return text;
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(std::string_view address) {
  const auto wrong = absl::InvalidArgumentError(std::string(address) + " is not an address HOST:PORT");
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  std::string_view host = address.substr(0, colon);
  const std::string_view port = address.substr(colon + 1);
  HostPort result;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (error != std::errc() || end != port.data() + port.size()) return wrong;
  if (result.port < 1 || result.port > 65535) return wrong;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong;  // an IPv6 host without brackets
  }
  const auto foreign = [](unsigned char c) {
    return c <= ' ' || c == 0x7f || c == '[' || c == ']' || c == '/' || c == ',';
  };
  if (host.empty() || std::ranges::any_of(host, foreign)) return wrong;
  result.host = host;
  return result;
}

absl::StatusOr<Invocation> ReadConfig(std::span<const std::string> arguments,
                                      std::span<const std::string> environment) {
  const auto flags = ReadFlags(arguments);
  if (!flags.ok()) return flags.status();
  Invocation invocation;
  invocation.action = flags->print.empty() ? Invocation::Action::kServe : Invocation::Action::kPrint;
  if (flags->print == "--help") invocation.text = Help();
  if (flags->print == "--version") invocation.text = "gyred " + std::string(kGyredVersion) + "\n";
  if (!invocation.text.empty()) return invocation;

  GivenSettings given = Defaults();
  for (const std::string& file : flags->files) {
    if (auto status = ReadFile(file, given); !status.ok()) return status;
  }
  if (auto status = ReadEnvironment(environment, given); !status.ok()) return status;
  for (const auto& [name, value] : flags->settings) {
    if (auto status = Give(given, *FindSetting(name), value, "flag --" + name); !status.ok()) return status;
  }
  StoreAll(given, invocation.config);
  if (flags->print == "--print-identity") {
    // It is asked before there are certificates, without which the settings do not fit together yet.
    invocation.action = Invocation::Action::kPrintIdentity;
    return invocation;
  }
  if (auto status = CheckTogether(given, invocation.config); !status.ok()) return status;
  StoreAll(given, invocation.config);  // again: what is advertised is settled now
  if (!flags->print.empty()) invocation.text = PrintConfig(given);
  return invocation;
}

}  // namespace gyre
