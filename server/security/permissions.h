// What clients may do, by keyspace and verb; what is not said is denied.
//
// A permission is a text "CLIENT KEYSPACE VERB[+VERB...]": who (the NAME of gyre:client:NAME), where, and
// what of read, write, delete and scan. CLIENT and KEYSPACE may be `*`, which stands for all of them.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace gyre {

enum class Verb : uint8_t { kRead = 1, kWrite = 2, kDelete = 4, kScan = 8 };

// What one client may do. A value; reading is thread-safe.
class Rights {
 public:
  bool May(Verb verb, std::string_view keyspace) const;

 private:
  friend class Permissions;
  void Add(uint8_t verbs, std::string_view keyspace);
  void Add(const Rights& other);

  uint8_t everywhere_ = 0;
  std::map<std::string, uint8_t, std::less<>> verbs_;  // by keyspace
};

class Permissions {
 public:
  // INVALID_ARGUMENT, a sentence that quotes the text that is none.
  static absl::StatusOr<Permissions> Parse(std::span<const std::string> texts);

  // Lives as long as this.
  const Rights& Of(std::string_view client) const;

 private:
  Rights all_;                                          // of whom no permission names
  std::map<std::string, Rights, std::less<>> clients_;  // with what all may
};

}  // namespace gyre
