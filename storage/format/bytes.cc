// The pieces of our formats.
#include "storage/format/bytes.h"

#include <bit>
#include <utility>
#include <xxhash.h>

namespace gyre {
namespace {

// Written as shifts: compilers make one byte swap of it, on any machine.
template <typename T>
void Store(T value, char* out) {
  for (size_t i = 0; i < sizeof(T); ++i) out[i] = static_cast<char>(value >> (8 * (sizeof(T) - 1 - i)));
}

template <typename T>
T Load(std::string_view bytes) {
  T value = 0;
  for (const char byte : bytes) value = static_cast<T>(value << 8) | static_cast<uint8_t>(byte);
  return value;
}

}  // namespace

size_t VarintBytes(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7; }

size_t VectorBytes(const VersionVector& vector) {
  size_t bytes = VarintBytes(vector.entries().size());
  for (const VersionVector::Entry& entry : vector.entries()) {
    bytes += 8 + VarintBytes(entry.actor.incarnation) + 8;
  }
  return bytes;
}

void ByteWriter::Fixed32(uint32_t value) {
  char bytes[sizeof value];
  Store(value, bytes);
  out_.append(bytes, sizeof bytes);
}

void ByteWriter::Fixed64(uint64_t value) {
  char bytes[sizeof value];
  Store(value, bytes);
  out_.append(bytes, sizeof bytes);
}

void ByteWriter::Varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) Byte(static_cast<uint8_t>(value) | 0x80);
  Byte(static_cast<uint8_t>(value));
}

void ByteWriter::Vector(const VersionVector& vector) {
  Varint(vector.entries().size());
  for (const VersionVector::Entry& entry : vector.entries()) {
    Fixed64(entry.actor.node);
    Varint(entry.actor.incarnation);
    Fixed64(entry.counter);
  }
}

std::string ByteWriter::Finish() {
  Fixed64(XXH3_64bits(out_.data(), out_.size()));
  return std::move(out_);
}

bool ByteReader::Take(size_t size, std::string_view& taken) {
  if (!ok_ || size > rest_.size()) return Fail();
  taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

uint8_t ByteReader::Byte() {
  std::string_view bytes;
  return Take(1, bytes) ? static_cast<uint8_t>(bytes[0]) : 0;
}

uint32_t ByteReader::Fixed32() {
  std::string_view bytes;
  return Take(sizeof(uint32_t), bytes) ? Load<uint32_t>(bytes) : 0;
}

uint64_t ByteReader::Fixed64() {
  std::string_view bytes;
  return Take(sizeof(uint64_t), bytes) ? Load<uint64_t>(bytes) : 0;
}

uint64_t ByteReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = Byte();
    const uint64_t bits = byte & 0x7f;
    const bool overflows = shift == 63 && bits > 1;
    const bool padded = shift > 0 && byte == 0;
    if (!ok_ || overflows || padded) break;
    value |= bits << shift;
    if (byte < 0x80) return value;
  }
  Fail();
  return 0;
}

std::string_view ByteReader::Bytes(uint64_t size) {
  std::string_view bytes;
  Take(size, bytes);
  return bytes;
}

uint64_t ByteReader::Counter() {
  const uint64_t counter = Fixed64();
  if (counter == 0 || counter > kCounterMax) Fail();
  return counter;
}

size_t ByteReader::Count(size_t item_bytes_min) {
  const uint64_t count = Varint();
  if (count <= rest_.size() / item_bytes_min) return count;
  Fail();
  return 0;
}

VersionVector ByteReader::Vector() {
  VersionVector vector;
  for (size_t left = Count(kActorEntryBytesMin); left > 0 && ok_; --left) {
    Dot highest;
    highest.actor.node = Fixed64();
    const uint64_t incarnation = Varint();
    highest.actor.incarnation = static_cast<uint32_t>(incarnation);
    highest.counter = Counter();
    const bool ascends = vector.empty() || vector.entries().back().actor < highest.actor;
    if (!ok_ || incarnation != highest.actor.incarnation || !ascends) {
      Fail();
      break;
    }
    vector.Add(highest);
  }
  return vector;
}

bool CheckAndStrip(std::string_view& bytes) {
  if (bytes.size() < kChecksumBytes) return false;
  const std::string_view body = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (XXH3_64bits(body.data(), body.size()) != Load<uint64_t>(bytes.substr(body.size()))) return false;
  bytes = body;
  return true;
}

}  // namespace gyre
