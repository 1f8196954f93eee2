// Writing and reading the pieces of our formats: big-endian integers, minimal varints, a checksum at the end.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "storage/causal/dot.h"

namespace gyre {

constexpr size_t kChecksumBytes = 8;
constexpr size_t kActorEntryBytesMin = 8 + 1 + 8;  // node, incarnation, counter

size_t VarintBytes(uint64_t value);

// Appends to a string that it reserves once.
class ByteWriter {
 public:
  explicit ByteWriter(size_t bytes) { out_.reserve(bytes); }
  void Byte(uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void Fixed32(uint32_t value);
  void Fixed64(uint64_t value);
  void Varint(uint64_t value);  // seven bits a byte, the lowest first; the high bit says that more follow
  void Bytes(std::string_view bytes) { out_.append(bytes); }
  void Vector(const VersionVector& vector);
  // Adds the checksum of all written so far. The writer is empty afterwards.
  std::string Finish();

 private:
  std::string out_;
};

size_t VectorBytes(const VersionVector& vector);  // what ByteWriter::Vector writes

// Reads from bytes that may hold anything. The first read that fails makes all later ones fail.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && rest_.empty(); }
  size_t left() const { return rest_.size(); }
  bool Fail() { return ok_ = false; }

  // 0, empty or nothing when the bytes run out.
  uint8_t Byte();
  uint32_t Fixed32();
  uint64_t Fixed64();
  uint64_t Varint();  // fails unless it is the shortest form
  std::string_view Bytes(uint64_t size);
  uint64_t Counter();  // fails unless it is in [1, kCounterMax]
  // A number of items of at least `item_bytes_min` each: fails when so many cannot follow.
  size_t Count(size_t item_bytes_min);
  // Fails unless the entries ascend by actor and no counter is 0.
  VersionVector Vector();

 private:
  bool Take(size_t size, std::string_view& taken);

  std::string_view rest_;
  bool ok_ = true;
};

// Cuts the checksum off the end of `bytes`. False when it does not match, or there is none.
bool CheckAndStrip(std::string_view& bytes);

}  // namespace gyre
