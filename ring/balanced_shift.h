// Moving tokens a little, to and fro between their neighbours. Internal to the `balanced` allocator.
#pragma once

#include <span>
#include <vector>

#include "ring/token_board.h"

namespace gyre {

// Where keys are now, so that what is moved from there can be counted.
struct Origin {
  const TokenBoard& board;
  std::span<const MemberIndex> index;  // of each member of `board` in the board after; kNoMember if it leaves
};

// The replicas that are on other members than in `origin`: 2^48 are one whole ring of keys.
Units Moved(const Origin& origin, const TokenBoard& board);

// The shifts of one change, as long as the movement allowed for it lasts. No token passes another, unless
// that makes no difference.
class Shifting {
 public:
  // At most `moved_max` is to be moved from `origin` in all. REQUIRES: all outlive this.
  Shifting(TokenBoard& board, std::span<const Units> best, const Origin& origin, Units moved_max)
      : board_(board), best_(best), origin_(origin), left_(moved_max - Moved(origin, board)) {}

  // Takes load from members that are fuller than `goal` thousandths of the best, the fullest first, and gives
  // it to members that stay below. Each unit shifted may cost `cost_max` units of movement: 0 or 1.
  void Level(Units goal, Units cost_max);

  // From now on so much more may move.
  void Allow(Units more) { left_ += more; }

 private:
  MemberIndex Fullest(const std::vector<bool>& without) const;
  Units Room(MemberIndex member, Units goal) const;
  bool ShiftFrom(MemberIndex from, Units goal, Units cost_max);

  TokenBoard& board_;
  const std::span<const Units> best_;
  const Origin origin_;
  Units left_;
};

}  // namespace gyre
