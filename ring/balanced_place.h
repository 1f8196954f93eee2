// The best places for further tokens, and which tokens to give up. Internal to the `balanced` allocator.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ring/token_board.h"

namespace gyre {

// Chooses tokens one by one, each for the most even shares: the sum of (share - best)^2 / best is to be
// small.
class Placing {
 public:
  // `tokens` will be placed in all: the more there are, the less is spent on each. REQUIRES: `board` and
  // `best` outlive this, and `best` is positive for each member that gets or gives up tokens.
  Placing(TokenBoard& board, std::span<const Units> best, size_t replicas, size_t tokens);

  // REQUIRES: the board has a slot.
  void Add(MemberIndex member, size_t count);
  // REQUIRES: the member has more tokens than this.
  void Remove(MemberIndex member, size_t count);
  // Moves tokens that bring their members little to `places`, where a leaver had tokens: what it held there
  // must move anyway. The emptiest members come first. What they give up for it moves besides: at most
  // `moved_max`.
  void HandOver(std::vector<Token> places, Units moved_max);

 private:
  struct Loss {
    MemberIndex member;
    Units width;
  };
  struct Choice {
    UnitsSquared value = 0;
    Token token;
  };

  UnitsSquared Relief(MemberIndex member, Units excess, Units width) const;
  UnitsSquared Unevenness() const;
  void Lose(MemberIndex member, Units width);
  Choice TryArc(size_t slot, MemberIndex member, size_t left);
  Token Place(MemberIndex member, size_t left);
  void RemoveOne(MemberIndex member, size_t left);
  bool HandOverTo(MemberIndex member, std::vector<Token>& places, Units& moved_max);
  MemberIndex Emptiest(const std::vector<bool>& without) const;

  TokenBoard& board_;
  const std::span<const Units> best_;
  const Units replicas_;
  const size_t steps_max_;
  std::vector<Units>
      scale_;  // by member: of its squares, so that all count relative to what is best for them
  std::vector<Loss> losses_;  // of the arc that is tried
  size_t steps_ = 0;          // arcs looked at for the token that is being placed
};

}  // namespace gyre
