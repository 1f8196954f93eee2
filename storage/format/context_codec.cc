// Causal contexts as the opaque bytes that clients hold.
#include "storage/format/context_codec.h"

#include <absl/status/status.h>
#include <cassert>
#include <xxhash.h>

#include "storage/format/bytes.h"
#include "storage/format/row_key.h"

namespace gyre {
namespace {

constexpr uint8_t kContextFormat = 1;
constexpr uint8_t kHasOwn = 1;

// Of the keyspace and key, which clients know: it stops mistakes, not malice.
uint64_t Binding(uint32_t keyspace, std::string_view key) {
  return XXH3_64bits_withSeed(key.data(), key.size(), keyspace);
}

void WriteActorDot(ByteWriter& out, const Dot& dot) {
  out.Fixed64(dot.actor.node);
  out.Varint(dot.actor.incarnation);
  out.Fixed64(dot.counter);
}

Dot ReadActorDot(ByteReader& in) {
  Dot dot;
  dot.actor.node = in.Fixed64();
  const uint64_t incarnation = in.Varint();
  if (incarnation > UINT32_MAX) in.Fail();
  dot.actor.incarnation = static_cast<uint32_t>(incarnation);
  dot.counter = in.Counter();
  return dot;
}

absl::Status Garbled() {
  return absl::InvalidArgumentError(
      "The causal context is garbled; pass it back exactly as a read or write returned it, or read again.");
}

}  // namespace

std::string EncodeContext(const CausalContext& context, uint32_t keyspace, std::string_view key) {
  const size_t own_bytes = context.has_own ? 8 + VarintBytes(context.own.actor.incarnation) + 8 : 0;
  ByteWriter out(2 + 8 + VectorBytes(context.seen) + own_bytes + kChecksumBytes);
  out.Byte(kContextFormat);
  out.Byte(context.has_own ? kHasOwn : 0);
  out.Fixed64(Binding(keyspace, key));
  out.Vector(context.seen);
  if (context.has_own) WriteActorDot(out, context.own);
  return out.Finish();
}

absl::StatusOr<CausalContext> DecodeContext(std::string_view bytes, uint32_t keyspace, std::string_view key) {
  if (bytes.size() > kContextBytesMax) {
    return absl::InvalidArgumentError("The causal context has " + std::to_string(bytes.size()) +
                                      " bytes, more than the limit of " + std::to_string(kContextBytesMax) +
                                      "; pass back what a read or write returned.");
  }
  if (!CheckAndStrip(bytes)) return Garbled();
  ByteReader in(bytes);
  const uint8_t format = in.Byte();
  const uint8_t flags = in.Byte();
  if (!in.ok() || format != kContextFormat || (flags & ~kHasOwn) != 0) return Garbled();
  const uint64_t binding = in.Fixed64();
  CausalContext context;
  context.seen = in.Vector();
  context.has_own = flags == kHasOwn;
  if (context.has_own) context.own = ReadActorDot(in);
  if (!in.AtEnd()) return Garbled();
  if (binding != Binding(keyspace, key)) {
    return absl::InvalidArgumentError(
        "The causal context was made for another key or keyspace; pass the one that was returned for this "
        "key.");
  }
  return context;
}

}  // namespace gyre
