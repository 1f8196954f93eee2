// Keys and contexts by when they were last used.
#include "client/cli/memory.h"

namespace gyre::cli {

void Memory::Saw(const std::string& keyspace, const std::string& key, const std::string& context) {
  const std::pair name(keyspace, key);
  std::string kept = context;
  if (const auto place = places_.find(name); place != places_.end()) {
    if (kept.empty()) kept = place->second->context;
    seen_.erase(place->second);
  }
  seen_.push_front({name, std::move(kept)});
  places_[name] = seen_.begin();
  if (seen_.size() <= kKeysMax) return;
  places_.erase(seen_.back().name);
  seen_.pop_back();
}

std::optional<std::string> Memory::ContextOf(const std::string& keyspace, const std::string& key) const {
  const auto place = places_.find({keyspace, key});
  if (place == places_.end() || place->second->context.empty()) return std::nullopt;
  return place->second->context;
}

std::vector<std::string> Memory::keys() const {
  std::vector<std::string> keys;
  for (const Seen& seen : seen_) keys.push_back(seen.name.second);
  return keys;
}

}  // namespace gyre::cli
