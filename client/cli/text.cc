// Parsing of small texts, base64, UTF-8.
#include "client/cli/text.h"

#include <charconv>
#include <limits>

namespace gyre::cli {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The bytes that the sequence at the front of `rest` takes, or 0 when it is no valid UTF-8.
size_t SequenceBytes(std::string_view rest) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(rest[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return 1;
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || rest.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond the last code point.
  const uint8_t second = at(1);
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f)) return 0;
  if ((lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) return 0;
  return bytes;
}

}  // namespace

std::optional<Replicas> ParseReplicas(std::string_view text) {
  if (text == "one") return Replicas::One();
  if (text == "quorum") return Replicas::Quorum();
  if (text == "all") return Replicas::All();
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return Replicas::Count(count);
}

std::string ToText(const Replicas& replicas) {
  switch (replicas.kind()) {
    case Replicas::Kind::kOne:
      return "one";
    case Replicas::Kind::kQuorum:
      return "quorum";
    case Replicas::Kind::kAll:
      return "all";
    case Replicas::Kind::kCount:
      break;
  }
  return std::to_string(replicas.count());
}

std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || count < 0) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  int64_t scale = 0;
  if (unit == "ms") scale = 1;
  if (unit == "s") scale = 1000;
  if (unit == "m") scale = 60 * 1000;
  if (unit == "h") scale = 3600 * 1000;
  if (unit == "d") scale = 24 * 3600 * 1000;
  if (scale == 0 || count > std::numeric_limits<int64_t>::max() / scale) return std::nullopt;
  return std::chrono::milliseconds(count * scale);
}

absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = '\0';
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == '\0' && (c == ' ' || c == '\t')) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      words.back() += line[++i];
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote != '\0' && c == quote) {
      quote = '\0';
    } else {
      words.back() += c;
    }
  }
  if (quote != '\0') return absl::InvalidArgumentError(std::string("a quote is not closed: ") + quote);
  return words;
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

std::string ToBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j) word = word << 8 | (j < count ? static_cast<uint8_t>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) text += j <= count ? kBase64[word >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t word = 0;
    for (size_t j = i; j < i + 4; ++j) {
      const size_t digit = j < text.size() - padding ? kBase64.find(text[j]) : 0;
      if (digit == std::string_view::npos) return std::nullopt;
      word = word << 6 | static_cast<uint32_t>(digit);
    }
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(word >> shift);
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t sequence = SequenceBytes(bytes);
    if (sequence == 0) return false;
    bytes.remove_prefix(sequence);
  }
  return true;
}

std::string ToHex(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 0xf];
  return text;
}

void AddBytes(nlohmann::ordered_json& object, const std::string& name, const std::string& bytes) {
  if (IsUtf8(bytes)) {
    object[name] = bytes;
  } else {
    object[name + "_base64"] = ToBase64(bytes);
  }
}

std::optional<std::string> TakeBytes(const nlohmann::ordered_json& object, const std::string& name) {
  if (const auto plain = object.find(name); plain != object.end()) {
    if (!plain->is_string()) return std::nullopt;
    return plain->get<std::string>();
  }
  const auto coded = object.find(name + "_base64");
  if (coded == object.end() || !coded->is_string()) return std::nullopt;
  return FromBase64(coded->get<std::string>());
}

}  // namespace gyre::cli
