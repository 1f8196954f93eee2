// Which node a call goes to: a pure function of the members, of what is known of their health, and of the
// key.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/connection.h"
#include "ring/ring.h"

namespace gyre {
inline namespace sdk {

// What the client itself saw of the nodes lately, by PeerId: until when each is better left alone.
using AvoidUntil = std::span<const TimePoint>;

inline constexpr PeerId kNoPeer = std::numeric_limits<PeerId>::max();

// One layout as a client uses it. Immutable: any thread may use it.
class Routing {
 public:
  enum class State : uint8_t { kUp, kSuspect, kDown };  // as the cluster says
  struct Node {
    Member member;
    PeerId peer = kNoPeer;  // kNoPeer: its address is not known yet
    State state = State::kUp;
  };
  struct Input {
    uint64_t epoch = 0;
    std::vector<Node> nodes;                              // all members
    std::map<std::string, size_t, std::less<>> replicas;  // N of each keyspace
  };
  // INVALID_ARGUMENT when the nodes make no ring.
  static absl::StatusOr<Routing> Build(Input input);

  uint64_t epoch() const { return epoch_; }

  // The first replica of the key that is well; if none is, the first other node that is; if none is, the
  // least ill. A key that is empty may go anywhere. Nothing in `avoid` is returned.
  std::optional<PeerId> Pick(std::string_view keyspace, std::string_view key, TimePoint now,
                             AvoidUntil health, std::span<const PeerId> avoid) const;

 private:
  struct Host {
    PeerId peer;
    State state;
  };
  explicit Routing(Ring ring) : ring_(std::move(ring)) {}

  uint64_t epoch_ = 0;
  Ring ring_;
  std::vector<Host> hosts_;  // by MemberIndex
  std::map<std::string, size_t, std::less<>> replicas_;
};

// Without a routing: the first of `peers` outside `avoid` that is well, else the first outside it.
std::optional<PeerId> PickAny(std::span<const PeerId> peers, TimePoint now, AvoidUntil health,
                              std::span<const PeerId> avoid);

}  // namespace sdk
}  // namespace gyre
