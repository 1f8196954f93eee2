// The ring: which nodes hold a key, as a pure function of the members.
//
// Threads:   a Ring is immutable; any thread may use it at any time.
// Ownership: a Ring copies what it is built from; the spans it hands out live as long as the Ring.
// Source:    DeCandia et al., "Dynamo: Amazon's Highly Available Key-value Store", SOSP 2007,
// sections 4.2, 4.3.
#pragma once

#include <absl/status/statusor.h>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ring/token.h"

namespace gyre {

// One node as the ring sees it.
struct Member {
  NodeId id;
  std::string zone;           // nodes of one zone fail together; "" is a zone like any other
  uint32_t weight = 1;        // the share of keys it should own, relative to the others
  std::vector<Token> tokens;  // sorted, without repetition within one member
  bool operator==(const Member&) const = default;
};

// An index into Ring::members(): small enough that preference lists fit in cache lines.
using MemberIndex = uint16_t;

class Ring {
 public:
  static constexpr size_t kMembersMax = 4096;
  static constexpr size_t kTokensPerMemberMax = 4096;
  // All members together: bounds the memory of a ring to some 50 MiB and the time to build it to about a
  // second.
  static constexpr size_t kTokensMax = size_t{1} << 20;
  // Longest preference list kept: up to 8 primaries and at least as many fallbacks.
  static constexpr size_t kPreferencesMax = 16;

  // INVALID_ARGUMENT when there are no members, no tokens, too many of either, a repeated or zero id, or
  // tokens of a member that are not strictly ascending. The order of `members` does not matter. Where two
  // members have an equal token, the smaller id owns it (the other's preference follows as if its token came
  // right after).
  static absl::StatusOr<Ring> Build(std::vector<Member> members);

  // All members, ordered by id.
  std::span<const Member> members() const { return members_; }
  // The index of a member, or -1.
  int IndexOf(NodeId id) const;

  // The arcs, ordered by `end`. Arc i covers the tokens in (arc i-1's end, arc i's end]; arc 0 wraps.
  size_t arc_count() const { return ends_.size(); }
  Token ArcEnd(size_t arc) const { return Token{ends_[arc]}; }
  Token ArcBegin(size_t arc) const {
    return Token{ends_[arc == 0 ? ends_.size() - 1 : arc - 1]};
  }  // exclusive
  // The arc that a token lies on. Binary search; allocates nothing.
  size_t ArcOf(Token token) const;

  // The members that hold an arc, most preferred first: clockwise from the arc's owner, each member once,
  // every zone once before any zone twice (then twice before thrice, and so on). The first N are the primary
  // replicas of a keyspace with N replicas, whatever N is (so a shorter list is a prefix of a longer one);
  // the rest are fallbacks in order. Has min(members with tokens, kPreferencesMax) entries.
  std::span<const MemberIndex> PreferencesOfArc(size_t arc) const;
  std::span<const MemberIndex> Preferences(Token token) const { return PreferencesOfArc(ArcOf(token)); }

  // The first min(replicas, all there are) of them: the primary replicas of a keyspace with so many replicas.
  // REQUIRES: 1 <= replicas <= kPreferencesMax.
  std::span<const MemberIndex> PrimariesOfArc(size_t arc, size_t replicas) const;

  bool operator==(const Ring& other) const { return members_ == other.members_; }

 private:
  Ring() = default;
  std::vector<Member> members_;
  std::vector<uint64_t> ends_;
  std::vector<MemberIndex> preferences_;  // arc_count() rows of stride_
  size_t stride_ = 0;
};

}  // namespace gyre
