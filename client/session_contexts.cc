// Contexts by when they were last used.
#include "client/session_contexts.h"

#include <algorithm>

namespace gyre {
inline namespace sdk {

SessionContexts::Seen& SessionContexts::Entry(Name name) {
  if (const auto place = places_.find(name); place != places_.end()) {
    seen_.splice(seen_.begin(), seen_, place->second);
    return seen_.front();
  }
  seen_.push_front({std::move(name), {}});
  places_[seen_.front().name] = seen_.begin();
  if (seen_.size() > kKeysMax) {
    places_.erase(seen_.back().name);
    seen_.pop_back();
  }
  return seen_.front();
}

void SessionContexts::Add(Seen& seen, const std::string& context) {
  if (std::ranges::find(seen.contexts, context) != seen.contexts.end()) return;
  if (seen.contexts.size() == kContextsMax) seen.contexts.erase(seen.contexts.begin());
  seen.contexts.push_back(context);
}

void SessionContexts::Wrote(const std::string& keyspace, const std::string& key, const std::string& context) {
  const std::lock_guard lock(mutex_);
  Add(Entry({keyspace, key}), context);
}

void SessionContexts::Read(const std::string& keyspace, const std::string& key,
                           const std::vector<std::string>& asked, const std::string& context) {
  const std::lock_guard lock(mutex_);
  Seen& seen = Entry({keyspace, key});
  std::erase_if(seen.contexts,
                [&](const std::string& one) { return std::ranges::find(asked, one) != asked.end(); });
  Add(seen, context);
}

std::vector<std::string> SessionContexts::Of(const std::string& keyspace, const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(Name(keyspace, key));
  if (place == places_.end()) return {};
  seen_.splice(seen_.begin(), seen_, place->second);
  return place->second->contexts;
}

}  // namespace sdk
}  // namespace gyre
