// What `gyre shell` remembers between its commands: the keys that it saw, and the causal context of each.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gyre::cli {

// Bounded: of too many keys the one that was used longest ago is forgotten. For one thread.
class Memory {
 public:
  static constexpr size_t kKeysMax = 10000;

  // An empty context only says that the key is there.
  void Saw(const std::string& keyspace, const std::string& key, const std::string& context);
  // Of the last read or write of the key, if there was one.
  std::optional<std::string> ContextOf(const std::string& keyspace, const std::string& key) const;
  // Of all keyspaces, the last used first.
  std::vector<std::string> keys() const;

 private:
  struct Seen {
    std::pair<std::string, std::string> name;  // keyspace and key
    std::string context;
  };
  std::list<Seen> seen_;  // the last used first
  std::map<std::pair<std::string, std::string>, std::list<Seen>::iterator> places_;
};

}  // namespace gyre::cli
