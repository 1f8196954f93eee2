// Tokens that are still being placed, and what each member would hold. Internal to the `balanced` allocator.
//
// Threads: NOT thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ring/best_share.h"
#include "ring/ring.h"

namespace gyre {

// Shares while they are weighed against each other: 2^48 make a ring, so that products of two fit in 128
// bits. Whole numbers, because every machine must come to the same tokens.
using Units = int64_t;
inline constexpr int kPositionBitsPerUnit = 16;
inline constexpr Units kAllUnits = Units{1} << (64 - kPositionBitsPerUnit);
using UnitsSquared = __int128;

inline constexpr MemberIndex kNoMember = std::numeric_limits<MemberIndex>::max();

// The primary replicas of an arc in the order they are met; only the first may be taken for preferred.
class Primaries {
 public:
  void Add(MemberIndex member) { members_[size_++] = member; }
  bool Has(MemberIndex member) const {
    for (size_t i = 0; i < size_; ++i) {
      if (members_[i] == member) return true;
    }
    return false;
  }
  std::span<const MemberIndex> members() const { return {members_.data(), size_}; }
  // The one that is not in `other`, or kNoMember. There is at most one if a single token makes the
  // difference.
  MemberIndex NotIn(const Primaries& other) const;
  bool operator==(const Primaries& other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i) {
      if (members_[i] != other.members_[i]) return false;
    }
    return true;
  }

 private:
  std::array<MemberIndex, Ring::kPreferencesMax> members_;
  uint16_t size_ = 0;
};

class TokenBoard {
 public:
  struct Slot {
    Token token;  // where its arc ends
    MemberIndex member;
  };

  // Places the tokens that `members` have. Members without tokens count like the others in what each zone is
  // dealt, if they have weight: their tokens are to come. Copies what it needs. REQUIRES: `members` is
  // ordered by id, and 1 <= replicas <= Ring::kPreferencesMax.
  TokenBoard(std::span<const Member> members, size_t replicas);

  // The slots, ordered by token. Of equal tokens the smaller id comes first.
  size_t size() const { return slots_.size(); }
  const Slot& slot(size_t i) const { return slots_[i]; }
  size_t Before(size_t i) const { return i == 0 ? slots_.size() - 1 : i - 1; }
  size_t After(size_t i) const { return i + 1 == slots_.size() ? 0 : i + 1; }
  // The slot whose arc holds `token`. REQUIRES: size() > 0.
  size_t ArcOf(Token token) const;
  // How wide the arc of slot i is: nothing, if the slot before has the same token.
  Units WidthOf(size_t i) const {
    return slots_.size() == 1 ? kAllUnits : UnitsOf(slots_[i].token.value - slots_[Before(i)].token.value);
  }
  const Primaries& PrimariesOf(size_t i) const { return primaries_[i]; }
  Units ShareOf(MemberIndex member) const { return shares_[member]; }
  Units OwnedBy(MemberIndex member) const { return owned_[member]; }  // as the first of its primaries

  // The primaries of an arc that begins with a token of `member`, where `rest` are those of the arc after it.
  Primaries WithFirst(MemberIndex member, const Primaries& rest) const;

  // REQUIRES: no slot has this token.
  void Insert(Token token, MemberIndex member);
  void Erase(size_t i);
  // REQUIRES: no other slot has the token `to`.
  void Move(size_t i, Token to);
  // Whether it makes no difference to who holds what, which of two neighbouring tokens comes first: their
  // members are in different zones, and each zone gives the same number of replicas whatever the order.
  bool MayPass(MemberIndex one, MemberIndex other) const {
    return deal_.extra == 0 && zone_of_[one] != zone_of_[other];
  }

  // How much less the member of slot i would hold without this token.
  Units LossWithout(size_t i) const;

  std::vector<Token> TokensOf(MemberIndex member) const;

 private:
  static Units UnitsOf(uint64_t positions) { return static_cast<Units>(positions >> kPositionBitsPerUnit); }
  void Count(size_t i, Units sign);
  void UpdateAll();
  // Makes the primaries right again, from slot i anticlockwise as far as they change.
  void UpdateFrom(size_t i);

  ZoneDeal deal_;
  std::vector<uint16_t> zone_of_;  // by member
  std::vector<Slot> slots_;
  std::vector<Primaries> primaries_;  // by slot
  std::vector<Units> shares_;         // by member
  std::vector<Units> owned_;          // by member
};

}  // namespace gyre
