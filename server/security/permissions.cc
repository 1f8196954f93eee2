// Parses permissions into a table that is asked for each request.
#include "server/security/permissions.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

namespace gyre {
namespace {

constexpr std::string_view kAll = "*";

struct VerbName {
  std::string_view name;
  Verb verb;
};
constexpr VerbName kVerbs[] = {
    {"read", Verb::kRead}, {"write", Verb::kWrite}, {"delete", Verb::kDelete}, {"scan", Verb::kScan}};

std::optional<uint8_t> ParseVerbs(std::string_view text) {
  uint8_t verbs = 0;
  while (true) {
    const size_t plus = std::min(text.find('+'), text.size());
    bool known = false;
    for (const VerbName& verb : kVerbs) {
      if (verb.name != text.substr(0, plus)) continue;
      verbs |= static_cast<uint8_t>(verb.verb);
      known = true;
    }
    if (!known) return std::nullopt;
    if (plus == text.size()) return verbs;
    text.remove_prefix(plus + 1);
  }
}

}  // namespace

bool Rights::May(Verb verb, std::string_view keyspace) const {
  const auto bit = static_cast<uint8_t>(verb);
  if ((everywhere_ & bit) != 0) return true;
  const auto verbs = verbs_.find(keyspace.empty() ? std::string_view("default") : keyspace);
  return verbs != verbs_.end() && (verbs->second & bit) != 0;
}

void Rights::Add(uint8_t verbs, std::string_view keyspace) {
  (keyspace == kAll ? everywhere_ : verbs_[std::string(keyspace)]) |= verbs;
}

void Rights::Add(const Rights& other) {
  everywhere_ |= other.everywhere_;
  for (const auto& [keyspace, verbs] : other.verbs_) verbs_[keyspace] |= verbs;
}

absl::StatusOr<Permissions> Permissions::Parse(std::span<const std::string> texts) {
  Permissions permissions;
  for (const std::string& text : texts) {
    std::istringstream in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    const std::optional<uint8_t> verbs = words.size() == 3 ? ParseVerbs(words[2]) : std::nullopt;
    if (!verbs) {
      return absl::InvalidArgumentError("\"" + text +
                                        "\" is no permission: write CLIENT KEYSPACE VERBS, the verbs read, "
                                        "write, delete and scan joined by +");
    }
    (words[0] == kAll ? permissions.all_ : permissions.clients_[words[0]]).Add(*verbs, words[1]);
  }
  for (auto& [client, rights] : permissions.clients_) rights.Add(permissions.all_);
  return permissions;
}

const Rights& Permissions::Of(std::string_view client) const {
  const auto rights = clients_.find(client);
  return rights == clients_.end() ? all_ : rights->second;
}

}  // namespace gyre
