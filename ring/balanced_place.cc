// Trying arcs, and weighing what a token there would take from whom.
#include "ring/balanced_place.h"

#include <algorithm>
#include <numeric>

namespace gyre {
namespace {

constexpr int kRounds = 2;                       // of placing each token again
constexpr size_t kStepsOfAll = size_t{1} << 26;  // some seconds
constexpr size_t kStepsMost = size_t{1} << 16;   // for a token
constexpr size_t kStepsLeast = size_t{1} << 10;
constexpr Units kWidthLeast = 8;  // of an arc that is split

}  // namespace

Placing::Placing(TokenBoard& board, std::span<const Units> best, size_t replicas, size_t tokens)
    : board_(board),
      best_(best),
      replicas_(static_cast<Units>(replicas)),
      steps_max_(std::clamp(kStepsOfAll / ((1 + kRounds) * tokens + 1), kStepsLeast, kStepsMost)) {
  const Units sum = std::accumulate(best.begin(), best.end(), Units{0});
  for (const Units share : best) {
    scale_.push_back(share == 0 ? 0 : static_cast<Units>(UnitsSquared{sum} * 256 / share));
  }
}

void Placing::Add(MemberIndex member, size_t count) {
  std::vector<Token> placed;
  for (size_t left = count; left > 0; --left) placed.push_back(Place(member, left));
  // Again, one by one: only now is it known where the others are.
  for (int round = 0; round < kRounds; ++round) {
    for (Token& token : placed) {
      board_.Erase(board_.ArcOf(token));
      token = Place(member, 1);
    }
  }
}

void Placing::Remove(MemberIndex member, size_t count) {
  for (size_t left = count; left > 0; --left) RemoveOne(member, left);
}

// By how much excess^2 / best falls when the excess falls by `width`.
UnitsSquared Placing::Relief(MemberIndex member, Units excess, Units width) const {
  return ((UnitsSquared{width} * (2 * excess - width)) >> kPositionBitsPerUnit) * scale_[member];
}

UnitsSquared Placing::Unevenness() const {
  UnitsSquared sum = 0;
  for (size_t i = 0; i < best_.size(); ++i) {
    const UnitsSquared off = board_.ShareOf(static_cast<MemberIndex>(i)) - best_[i];
    sum += ((off * off) >> kPositionBitsPerUnit) * scale_[i];
  }
  return sum;
}

void Placing::Lose(MemberIndex member, Units width) {
  if (member == kNoMember) return;
  const auto found = std::ranges::find(losses_, member, &Loss::member);
  if (found == losses_.end()) {
    losses_.push_back({member, width});
  } else {
    found->width += width;
  }
}

// The best token for `member` in the arc of a slot, with `left` tokens, this one included, to reach its
// share.
Placing::Choice Placing::TryArc(size_t slot, MemberIndex member, size_t left) {
  const Units wanted = (best_[member] - board_.ShareOf(member)) / static_cast<Units>(left);
  const Primaries& here = board_.PrimariesOf(slot);
  const Primaries with_here = board_.WithFirst(member, here);
  losses_.clear();
  Units gain = 0;
  Primaries with = with_here;
  for (size_t i = board_.Before(slot); i != slot; i = board_.Before(i)) {
    ++steps_;
    with = board_.WithFirst(board_.slot(i).member, with);
    const Primaries& was = board_.PrimariesOf(i);
    if (with == was) break;
    if (was.Has(member)) continue;
    gain += board_.WidthOf(i);
    Lose(was.NotIn(with), board_.WidthOf(i));
  }
  // Of the arc itself it takes as much as it lacks, but leaves no splinters.
  const Units width = board_.WidthOf(slot);
  Units part = width / 2;
  if (!here.Has(member)) {
    part = std::clamp(wanted - gain, width / 8, width - width / 8);
    gain += part;
    Lose(here.NotIn(with_here), part);
  }
  UnitsSquared value = -Relief(member, gain - wanted, gain - wanted);
  for (const Loss& loss : losses_) {
    value += Relief(loss.member, board_.ShareOf(loss.member) - best_[loss.member], loss.width);
  }
  // Even owned shares count too, an eighth: they keep the arcs alike, which helps the next newcomer as well.
  const MemberIndex owner = board_.slot(slot).member;
  const Units lack = (best_[member] / replicas_ - board_.OwnedBy(member)) / static_cast<Units>(left) - part;
  value +=
      (Relief(owner, board_.OwnedBy(owner) - best_[owner] / replicas_, part) - Relief(member, lack, lack)) /
      8;
  const Token begin = board_.slot(board_.Before(slot)).token;
  return {value, Token{begin.value + (static_cast<uint64_t>(part) << kPositionBitsPerUnit)}};
}

// Arcs are tried in an order that scatters, until all were or it is enough.
Token Placing::Place(MemberIndex member, size_t left) {
  const size_t arcs = board_.size();
  size_t stride = arcs * 5 / 8 | 1;
  while (std::gcd(stride, arcs) != 1) stride += 2;
  std::optional<Choice> best;
  steps_ = 0;
  for (size_t i = 0, slot = 0; i < arcs && steps_ < steps_max_; ++i, slot = (slot + stride) % arcs) {
    if (board_.WidthOf(slot) < kWidthLeast) continue;
    const Choice choice = TryArc(slot, member, left);
    if (!best || choice.value > best->value) best = choice;
  }
  board_.Insert(best->token, member);
  return best->token;
}

void Placing::RemoveOne(MemberIndex member, size_t left) {
  const Units wanted = (board_.ShareOf(member) - best_[member]) / static_cast<Units>(left);
  const Units had = board_.ShareOf(member);
  std::optional<Choice> best;
  for (const Token token : board_.TokensOf(member)) {
    board_.Erase(board_.ArcOf(token));
    // How uneven it is, but for the member itself: it is on its way, and this is to be one step of it.
    const Units off = had - board_.ShareOf(member) - wanted;
    const Units is_off = board_.ShareOf(member) - best_[member];
    const UnitsSquared value = Relief(member, is_off, is_off) - Relief(member, off, off) - Unevenness();
    board_.Insert(token, member);
    if (!best || value > best->value) best = {value, token};
  }
  board_.Erase(board_.ArcOf(best->token));
}

MemberIndex Placing::Emptiest(const std::vector<bool>& without) const {
  MemberIndex emptiest = kNoMember;
  for (size_t i = 0; i < best_.size(); ++i) {
    const auto member = static_cast<MemberIndex>(i);
    if (without[i] || board_.ShareOf(member) >= best_[i]) continue;
    if (emptiest == kNoMember || UnitsSquared{board_.ShareOf(member)} * best_[emptiest] <
                                     UnitsSquared{board_.ShareOf(emptiest)} * best_[i]) {
      emptiest = member;
    }
  }
  return emptiest;
}

void Placing::HandOver(std::vector<Token> places, Units moved_max) {
  constexpr int kTriesMax = 64;
  std::vector<bool> tried(best_.size());
  for (int i = 0; i < kTriesMax && !places.empty(); ++i) {
    const MemberIndex member = Emptiest(tried);
    if (member == kNoMember) return;
    tried[member] = true;
    if (HandOverTo(member, places, moved_max)) tried.assign(best_.size(), false);
  }
}

// The member's cheapest token to the best of the places, if that makes shares more even.
bool Placing::HandOverTo(MemberIndex member, std::vector<Token>& places, Units& moved_max) {
  const std::vector<Token> tokens = board_.TokensOf(member);
  if (tokens.size() < 2) return false;
  const auto loss = [&](Token token) { return board_.LossWithout(board_.ArcOf(token)); };
  const Token cheapest = *std::ranges::min_element(tokens, {}, loss);
  const Units cost = loss(cheapest);
  if (cost > moved_max) return false;
  UnitsSquared least = Unevenness();
  board_.Erase(board_.ArcOf(cheapest));
  std::optional<size_t> chosen;
  for (size_t i = 0; i < places.size(); ++i) {
    board_.Insert(places[i], member);
    const UnitsSquared uneven = Unevenness();
    board_.Erase(board_.ArcOf(places[i]));
    if (uneven >= least) continue;
    least = uneven;
    chosen = i;
  }
  board_.Insert(chosen ? places[*chosen] : cheapest, member);
  if (!chosen) return false;
  places.erase(places.begin() + static_cast<ptrdiff_t>(*chosen));
  moved_max -= cost;
  return true;
}

}  // namespace gyre
