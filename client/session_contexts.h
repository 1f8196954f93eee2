// What a client has seen of keys, so that it never reads less. Internal to the SDK.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace gyre {
inline namespace sdk {

// Contexts are opaque, so they are not merged here but kept side by side; a read that was asked to see them
// replaces them by its own. Bounded: of too many the one that was used longest ago is forgotten. Threads:
// any.
class SessionContexts {
 public:
  static constexpr size_t kKeysMax = 65536;
  static constexpr size_t kContextsMax = 8;  // of a key

  void Wrote(const std::string& keyspace, const std::string& key, const std::string& context);
  // `asked` are the contexts that the read was asked to see.
  void Read(const std::string& keyspace, const std::string& key, const std::vector<std::string>& asked,
            const std::string& context);
  // What the next read must see.
  std::vector<std::string> Of(const std::string& keyspace, const std::string& key);

 private:
  using Name = std::pair<std::string, std::string>;
  struct Seen {
    Name name;
    std::vector<std::string> contexts;  // the newest last
  };
  // The entry of a key, made if there is none, and now the last used. REQUIRES: mutex_ is held.
  Seen& Entry(Name name);
  static void Add(Seen& seen, const std::string& context);

  std::mutex mutex_;      // guards what follows
  std::list<Seen> seen_;  // the last used first
  std::map<Name, std::list<Seen>::iterator> places_;
};

}  // namespace sdk
}  // namespace gyre
