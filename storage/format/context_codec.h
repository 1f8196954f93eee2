// The opaque causal context that clients carry between a read and a write.
//
// Not trusted when it comes back: it holds a hash of the keyspace and key it was made for, and a checksum.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <string>
#include <string_view>

#include "storage/causal/record.h"

namespace gyre {

constexpr size_t kContextBytesMax = 64 * 1024;

std::string EncodeContext(const CausalContext& context, uint32_t keyspace, std::string_view key);

// INVALID_ARGUMENT when the bytes are garbled, or were made for another keyspace or key.
absl::StatusOr<CausalContext> DecodeContext(std::string_view bytes, uint32_t keyspace, std::string_view key);

}  // namespace gyre
