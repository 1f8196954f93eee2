// What people type to gyre: split into words as a shell does it, parsed, and never carried out.
#include <optional>

#include "client/cli/session.h"
#include "client/cli/text.h"
#include "tests/fuzz/fuzz.h"

namespace gyre::cli {
namespace {

std::string Quoted(const std::string& word) {
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

void CheckTexts(const std::string& word) {
  assert(FromBase64(ToBase64(word)) == word);
  if (const auto bytes = FromBase64(word)) assert(bytes->size() <= word.size() / 4 * 3);
  if (const auto replicas = ParseReplicas(word)) assert(ParseReplicas(ToText(*replicas)) == replicas);
  if (const auto duration = ParseDuration(word)) assert(duration->count() >= 0);
}

}  // namespace
}  // namespace gyre::cli

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre::cli;
  const auto words = SplitWords(gyre::fuzz::Text(data, size));
  if (!words.ok()) return 0;
  std::string line;
  for (const std::string& word : *words) {
    line += Quoted(word) + " ";
    CheckTexts(word);
  }
  assert(*SplitWords(line) == *words);
  const absl::Status status = Check(*words);
  assert(status.ok() || (absl::IsInvalidArgument(status) && !status.message().empty()));
  return 0;
}
