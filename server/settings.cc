// How the text of a setting becomes its value.
#include "server/settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>

namespace gyre {
namespace {

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

const Setting* FindSetting(std::string_view name) {
  for (const Setting& setting : Settings()) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

std::string_view SectionOf(const Setting& setting) { return setting.name.substr(0, setting.name.find('.')); }

bool IsSection(std::string_view section) {
  return std::any_of(Settings().begin(), Settings().end(),
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
  for (const Setting& setting : Settings()) {
    const size_t edits = EditDistance(name, setting.name);
    if (edits < best_edits) {
      best = setting.name;
      best_edits = edits;
    }
  }
  return best.empty() ? "" : "; did you mean " + std::string(best) + "?";
}

}  // namespace gyre
