// What people and scripts write on the command line, and byte strings in JSON.
#pragma once

#include <absl/status/statusor.h>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/types.h"

namespace gyre::cli {

// "one", "quorum", "all" or a number, also one that no keyspace can have: that is for the server to say.
std::optional<Replicas> ParseReplicas(std::string_view text);
std::string ToText(const Replicas& replicas);

// "500ms", "5s", "2m", "1h", "7d".
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text);

// The words of a line as a shell takes them: '...', "..." and \ keep what would part or end a word.
// INVALID_ARGUMENT when a quote is not closed.
absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view line);

// Without empty parts.
std::vector<std::string> SplitList(std::string_view text);

std::string ToBase64(std::string_view bytes);
std::optional<std::string> FromBase64(std::string_view text);

bool IsUtf8(std::string_view bytes);

// Sixteen hexadecimal digits.
std::string ToHex(uint64_t value);

// Adds `bytes` as NAME when they are valid UTF-8, else as NAME_base64.
void AddBytes(nlohmann::ordered_json& object, const std::string& name, const std::string& bytes);
// Reads what AddBytes wrote; nullopt when neither is there or one is wrong.
std::optional<std::string> TakeBytes(const nlohmann::ordered_json& object, const std::string& name);

}  // namespace gyre::cli
