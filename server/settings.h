// The table of gyred's settings, and how the text of a setting becomes its value.
//
// Whatever a setting was read from, it is a text first (a list is joined by commas), so that file,
// environment and flags are held to the same rules.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/config.h"

namespace gyre {

inline constexpr int64_t kKiB = 1024;
inline constexpr int64_t kMiB = 1024 * kKiB;
inline constexpr int64_t kGiB = 1024 * kMiB;

// What a text was understood as: a number (also of a size, of milliseconds, of a choice's place), a text, or
// a list.
struct SettingValue {
  int64_t number = 0;
  std::string text;
  std::vector<std::string> list;
};

enum class SettingKind : uint8_t {
  kText,     // min..max: its length in bytes
  kAddress,  // HOST:PORT
  kAddressOrNothing,
  kAddresses,  // min..max: how many
  kTexts,      // the same, of any texts without commas and control characters
  kNumber,
  kBytes,  // a number, or one with KiB, MiB or GiB
  kMillis,
  kSwitch,  // true or false
  kChoice,  // one of `choices`
};

struct Setting {
  std::string_view name;  // section.name
  SettingKind kind;
  std::string_view initial;
  int64_t min, max;
  std::vector<std::string_view> choices;
  std::string_view help;
  void (*store)(Config& config, const SettingValue& value);
};

// All settings, grouped by section.
std::span<const Setting> Settings();

// nullptr when there is none of that name.
const Setting* FindSetting(std::string_view name);
std::string_view SectionOf(const Setting& setting);
bool IsSection(std::string_view section);

// The value of `text`, or INVALID_ARGUMENT: "NAME must be …, not TEXT".
absl::StatusOr<SettingValue> ParseSetting(const Setting& setting, std::string_view text);

// "a number from 1 to 1000": what a setting takes, for people.
std::string Expected(const Setting& setting);

// `text` as a value of TOML. REQUIRES: ParseSetting accepts it.
std::string ToToml(const Setting& setting, std::string_view text);

// GYRE_SECTION_NAME
std::string EnvironmentName(std::string_view name);

// "; did you mean X?" for a name that is nearly one of the settings, else nothing.
std::string DidYouMean(std::string_view name);

}  // namespace gyre
