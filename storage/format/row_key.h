// Row keys: keyspace, token and key, so that the order on disk is the order on the ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gyre {

constexpr size_t kKeyBytesMax = 4096;
constexpr size_t kRowKeyPrefixBytes = 12;  // keyspace id (4, big-endian), token (8, big-endian)
constexpr size_t kRowKeyBytesMax = kKeyBytesMax + kRowKeyPrefixBytes;

struct RowKeyParts {
  uint32_t keyspace = 0;
  uint64_t token = 0;
  std::string_view key;  // borrowed from the row key
};

std::string MakeRowKey(uint32_t keyspace, uint64_t token, std::string_view key);
// False when `row_key` is too short to be one.
bool ParseRowKey(std::string_view row_key, RowKeyParts& parts);

// The first row key of a token, and the first one behind a token (which for the last token is the next
// keyspace's).
std::string RowKeyFloor(uint32_t keyspace, uint64_t token);
std::string RowKeyCeiling(uint32_t keyspace, uint64_t token);

// A hint is a row of a keyspace of its own, with the id of the node that it is for in the place of the token,
// and the hinted row's key in that of the key: hints for one node lie together, in the order of the ring.
constexpr uint32_t kHintsKeyspace = UINT32_MAX;  // never given to a keyspace of a layout
constexpr size_t kHintKeyBytesMax = kRowKeyPrefixBytes + kRowKeyBytesMax;
std::string MakeHintKey(uint64_t node, std::string_view row_key);
// Whether `key` is a hint's; then what it is made of.
bool ParseHintKey(std::string_view key, uint64_t& node, std::string_view& row_key);
inline bool IsHintKey(std::string_view key) { return key.starts_with("\xff\xff\xff\xff"); }
// The row key that `key` is about: of a hint, the hinted one.
std::string_view HintedRowKey(std::string_view key);

// A collect key names a row and the lowest stable cut at which something of it may leave the disk: keyspace,
// cut, row key, in a keyspace of its own. So what may go lies in front.
constexpr uint32_t kCollectKeyspace = UINT32_MAX - 1;  // never given to a keyspace of a layout
std::string MakeCollectKey(std::string_view row_key, uint64_t cut);
// The first collect key of a keyspace at `cut`.
std::string CollectKeyFloor(uint32_t keyspace, uint64_t cut);
// Whether `key` is a collect key; then the row key in it.
bool ParseCollectKey(std::string_view key, std::string_view& row_key);
inline bool IsCollectKey(std::string_view key) { return key.starts_with("\xff\xff\xff\xfe"); }

}  // namespace gyre
