// Row keys: big-endian, so that bytes sort as numbers do.
#include "storage/format/row_key.h"

#include <cassert>

namespace gyre {
namespace {

void AppendBigEndian(std::string& out, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

uint64_t ReadBigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

std::string Join(uint32_t keyspace, uint64_t token, std::string_view key) {
  std::string row_key;
  row_key.reserve(kRowKeyPrefixBytes + key.size());
  AppendBigEndian(row_key, keyspace, 4);
  AppendBigEndian(row_key, token, 8);
  row_key.append(key);
  return row_key;
}

}  // namespace

std::string MakeRowKey(uint32_t keyspace, uint64_t token, std::string_view key) {
  assert(key.size() <= kKeyBytesMax);
  return Join(keyspace, token, key);
}

bool ParseRowKey(std::string_view row_key, RowKeyParts& parts) {
  if (row_key.size() < kRowKeyPrefixBytes) return false;
  parts.keyspace = static_cast<uint32_t>(ReadBigEndian(row_key.substr(0, 4)));
  parts.token = ReadBigEndian(row_key.substr(4, 8));
  parts.key = row_key.substr(kRowKeyPrefixBytes);
  return true;
}

std::string RowKeyFloor(uint32_t keyspace, uint64_t token) { return MakeRowKey(keyspace, token, {}); }

std::string RowKeyCeiling(uint32_t keyspace, uint64_t token) {
  if (token != UINT64_MAX) return RowKeyFloor(keyspace, token + 1);
  if (keyspace != UINT32_MAX) return RowKeyFloor(keyspace + 1, 0);
  return {};
}

std::string MakeHintKey(uint64_t node, std::string_view row_key) {
  assert(row_key.size() <= kRowKeyBytesMax);
  return Join(kHintsKeyspace, node, row_key);
}

bool ParseHintKey(std::string_view key, uint64_t& node, std::string_view& row_key) {
  RowKeyParts parts;
  if (!ParseRowKey(key, parts) || parts.keyspace != kHintsKeyspace) return false;
  node = parts.token;
  row_key = parts.key;
  return true;
}

std::string_view HintedRowKey(std::string_view key) {
  uint64_t node = 0;
  std::string_view row_key;
  return ParseHintKey(key, node, row_key) ? row_key : key;
}

std::string CollectKeyFloor(uint32_t keyspace, uint64_t cut) {
  std::string key;
  AppendBigEndian(key, kCollectKeyspace, 4);
  AppendBigEndian(key, keyspace, 4);
  AppendBigEndian(key, cut, 8);
  return key;
}

std::string MakeCollectKey(std::string_view row_key, uint64_t cut) {
  RowKeyParts parts;
  const bool whole = ParseRowKey(row_key, parts);
  assert(whole);
  (void)whole;
  return CollectKeyFloor(parts.keyspace, cut).append(row_key);
}

bool ParseCollectKey(std::string_view key, std::string_view& row_key) {
  constexpr size_t kPrefixBytes = 16;
  if (!IsCollectKey(key) || key.size() < kPrefixBytes + kRowKeyPrefixBytes) return false;
  row_key = key.substr(kPrefixBytes);
  return true;
}

}  // namespace gyre
