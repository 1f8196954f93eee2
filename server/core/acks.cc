// The counts as the payload of a status, in this process only.
#include "server/core/acks.h"

#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

namespace gyre {
namespace {

constexpr char kPayload[] = "gyre/acks";

}  // namespace

absl::Status WithAcks(absl::Status status, Acks acks) {
  assert(!status.ok());
  const auto bytes = std::bit_cast<std::array<char, sizeof(Acks)>>(acks);
  status.SetPayload(kPayload, absl::Cord(std::string(bytes.begin(), bytes.end())));
  return status;
}

std::optional<Acks> AcksOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  Acks acks;
  std::memcpy(&acks, std::string(*payload).data(), sizeof(acks));
  return acks;
}

}  // namespace gyre
