// Keeping the primaries of each arc while tokens come, go and move.
#include "ring/token_board.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <string_view>

namespace gyre {

MemberIndex Primaries::NotIn(const Primaries& other) const {
  for (const MemberIndex member : members()) {
    if (!other.Has(member)) return member;
  }
  return kNoMember;
}

TokenBoard::TokenBoard(std::span<const Member> members, size_t replicas)
    : shares_(members.size()), owned_(members.size()) {
  std::map<std::string_view, uint16_t> zones;
  std::vector<size_t> sizes;
  for (const Member& member : members) {
    const uint16_t zone = zones.try_emplace(member.zone, static_cast<uint16_t>(zones.size())).first->second;
    zone_of_.push_back(zone);
    sizes.resize(zones.size());
    if (member.weight > 0) ++sizes[zone];
    const auto index = static_cast<MemberIndex>(zone_of_.size() - 1);
    for (const Token token : member.tokens) slots_.push_back({token, index});
  }
  deal_ = DealTo(sizes, replicas);
  std::ranges::sort(slots_, [](const Slot& a, const Slot& b) {
    return a.token != b.token ? a.token < b.token : a.member < b.member;
  });
  UpdateAll();
}

void TokenBoard::UpdateAll() {
  primaries_.assign(slots_.size(), Primaries());
  std::ranges::fill(shares_, 0);
  std::ranges::fill(owned_, 0);
  Primaries last;
  // The first round meets everyone; the second starts from a list that is right.
  for (int round = 0; round < 2; ++round) {
    for (size_t i = slots_.size(); i-- > 0;) {
      last = WithFirst(slots_[i].member, last);
      primaries_[i] = last;
    }
  }
  for (size_t i = 0; i < slots_.size(); ++i) Count(i, 1);
}

size_t TokenBoard::ArcOf(Token token) const {
  const auto found = std::ranges::lower_bound(slots_, token, {}, &Slot::token);
  return found == slots_.end() ? 0 : static_cast<size_t>(found - slots_.begin());
}

// Members that are not among `rest` need not be asked: one more token in front never lets another one in.
Primaries TokenBoard::WithFirst(MemberIndex member, const Primaries& rest) const {
  Primaries list;
  list.Add(member);
  size_t extras = deal_.each == 0 ? 1 : 0;
  for (const MemberIndex next : rest.members()) {
    if (list.members().size() == deal_.replicas) break;
    if (next == member) continue;
    if (deal_.each == deal_.replicas) {  // there is one zone: no need to count
      list.Add(next);
      continue;
    }
    size_t of_zone = 0;
    for (const MemberIndex taken : list.members()) of_zone += zone_of_[taken] == zone_of_[next];
    const bool within = of_zone < deal_.each;
    const bool as_extra = of_zone == deal_.each && extras < deal_.extra;
    if (within || as_extra) list.Add(next);
    if (as_extra) ++extras;
  }
  return list;
}

void TokenBoard::Count(size_t i, Units sign) {
  const Units width = sign * WidthOf(i);
  for (const MemberIndex member : primaries_[i].members()) shares_[member] += width;
  owned_[slots_[i].member] += width;
}

void TokenBoard::UpdateFrom(size_t i) {
  for (size_t steps = 0; steps < 2 * slots_.size(); ++steps, i = Before(i)) {
    const Primaries now = WithFirst(slots_[i].member, primaries_[After(i)]);
    if (now == primaries_[i]) return;
    Count(i, -1);
    primaries_[i] = now;
    Count(i, 1);
  }
}

void TokenBoard::Insert(Token token, MemberIndex member) {
  const auto at = std::ranges::lower_bound(slots_, token, {}, &Slot::token);
  assert(at == slots_.end() || at->token != token);
  const auto i = static_cast<size_t>(at - slots_.begin());
  if (!slots_.empty()) Count(ArcOf(token), -1);
  slots_.insert(at, {token, member});
  primaries_.insert(primaries_.begin() + static_cast<ptrdiff_t>(i), Primaries());
  if (slots_.size() > 1) Count(After(i), 1);
  primaries_[i] = WithFirst(member, primaries_[After(i)]);
  Count(i, 1);
  UpdateFrom(Before(i));
}

void TokenBoard::Erase(size_t i) {
  assert(i < slots_.size());
  const MemberIndex member = slots_[i].member;
  if (std::ranges::count(slots_, member, &Slot::member) == 1) {
    slots_.erase(slots_.begin() + static_cast<ptrdiff_t>(i));
    return UpdateAll();  // lists from all round the ring may have named it
  }
  Count(i, -1);
  Count(After(i), -1);
  slots_.erase(slots_.begin() + static_cast<ptrdiff_t>(i));
  primaries_.erase(primaries_.begin() + static_cast<ptrdiff_t>(i));
  const size_t next = i == slots_.size() ? 0 : i;
  Count(next, 1);
  UpdateFrom(Before(next));
}

void TokenBoard::Move(size_t i, Token to) {
  const MemberIndex member = slots_[i].member;
  Erase(i);
  Insert(to, member);
}

Units TokenBoard::LossWithout(size_t i) const {
  const MemberIndex member = slots_[i].member;
  Primaries without = primaries_[After(i)];
  Units loss = without.Has(member) ? 0 : WidthOf(i);
  for (size_t j = Before(i); j != i; j = Before(j)) {
    without = WithFirst(slots_[j].member, without);
    if (without == primaries_[j]) break;
    if (!without.Has(member)) loss += WidthOf(j);
  }
  return loss;
}

std::vector<Token> TokenBoard::TokensOf(MemberIndex member) const {
  std::vector<Token> tokens;
  for (const Slot& slot : slots_) {
    if (slot.member == member) tokens.push_back(slot.token);
  }
  return tokens;
}

}  // namespace gyre
