// SHA-256, for what must not be mistaken for something else even when somebody means it to.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gyre {

constexpr size_t kSha256Bytes = 32;

std::string Sha256(std::string_view bytes);     // kSha256Bytes bytes
std::string Sha256Hex(std::string_view bytes);  // the same as lower-case hexadecimal digits

// Lower-case hexadecimal digits, two a byte.
std::string ToHexDigits(std::string_view bytes);
// False unless `digits` are such; then what they say.
bool FromHexDigits(std::string_view digits, std::string& bytes);

}  // namespace gyre
