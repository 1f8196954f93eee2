// Membership of a node to which others say anything: what it makes durable it can start with again.
#include <map>
#include <string>

#include "server/core/membership.h"
#include "server/rpc/convert_control.h"
#include "tests/fuzz/fuzz.h"

namespace gyre {
namespace {

constexpr NodeId kSelf{1};
constexpr int kMessagesMax = 64;

Membership::Config ConfigOf(uint64_t generation) {
  return {.self = {.id = kSelf,
                   .address = "127.0.0.1:7400",
                   .peer_address = "127.0.0.1:7401",
                   .generation = generation},
          .seeds = {"127.0.0.1:7411"},
          .bootstrap_expect = 2};
}

// A life after another: `steps` is shown the membership, which begins with what the one before left.
void Live(std::map<std::string, std::string>& disk, uint64_t generation, auto steps) {
  absl::Status status;
  Membership membership(ConfigOf(generation), disk, &status);
  assert(status.ok());
  Now now = {.steady = Seconds(1), .wall_ms = 1'700'000'000'000};
  MembershipOutbox out;
  const auto settle = [&] {
    for (MembershipOutbox::Persist& each : out.persists) disk[each.key] = std::move(each.value);
    out = {};
  };
  steps(membership, now, out, settle);
  for (int i = 0; i < 3; ++i) {
    now.steady = now.steady + Seconds(1);
    membership.Tick(now, out);
    settle();
  }
}

}  // namespace
}  // namespace gyre

// The input: messages, each with its length in two bytes before it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  std::map<std::string, std::string> disk;
  Live(disk, 1, [&](Membership& membership, Now& now, MembershipOutbox& out, auto settle) {
    std::string_view rest = fuzz::Text(data, size);
    for (int i = 0; i < kMessagesMax && rest.size() > 2; ++i) {
      const size_t length = static_cast<uint8_t>(rest[0]) << 8 | static_cast<uint8_t>(rest[1]);
      v1::ControlMessage wire;
      const std::string_view body = rest.substr(2, length);
      rest.remove_prefix(2 + body.size());
      if (!wire.ParseFromArray(body.data(), static_cast<int>(body.size()))) continue;
      const absl::StatusOr<control::Message> message = ToControl(wire);
      if (!message.ok()) continue;
      membership.Step(now, *message, out);
      settle();
    }
  });
  Live(disk, 2, [](auto&&...) {});
  return 0;
}
