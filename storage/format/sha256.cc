// SHA-256 by OpenSSL, and hexadecimal digits.
#include "storage/format/sha256.h"

#include <openssl/sha.h>

namespace gyre {

static_assert(kSha256Bytes == SHA256_DIGEST_LENGTH);

std::string Sha256(std::string_view bytes) {
  std::string hash(kSha256Bytes, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
}

std::string Sha256Hex(std::string_view bytes) { return ToHexDigits(Sha256(bytes)); }

std::string ToHexDigits(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  digits.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    digits.push_back(kDigits[byte >> 4]);
    digits.push_back(kDigits[byte & 15]);
  }
  return digits;
}

bool FromHexDigits(std::string_view digits, std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  bytes.clear();
  if (digits.size() % 2 != 0) return false;
  bytes.reserve(digits.size() / 2);
  for (size_t i = 0; i < digits.size(); i += 2) {
    const size_t high = kDigits.find(digits[i]);
    const size_t low = kDigits.find(digits[i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return false;
    bytes.push_back(static_cast<char>(high << 4 | low));
  }
  return true;
}

}  // namespace gyre
