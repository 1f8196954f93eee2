// Filling members and zones like vessels: the level rises until the replicas are used up.
#include "ring/best_share.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <string_view>

namespace gyre {
namespace {

// Positions for each unit of weight. At kFull every member holds every key.
using Level = Positions;
constexpr Level kFull = kAllPositions;

Positions AtLevel(uint32_t weight, Level level) { return std::min(level * weight, kAllPositions); }

struct Zone {
  std::vector<uint32_t> weights;
  Positions least = 0;
  Positions most = 0;

  Positions Unbounded(Level level) const {
    Positions sum = 0;
    for (const uint32_t weight : weights) sum += AtLevel(weight, level);
    return sum;
  }
  Positions At(Level level) const { return std::clamp(Unbounded(level), least, most); }
};

// The highest level at which `filled` does not exceed `total`.
template <typename Filled>
Level LevelOf(Positions total, Filled filled) {
  Level below = 0;
  Level above = kFull + 1;
  while (above - below > 1) {
    const Level middle = below + (above - below) / 2;
    (filled(middle) <= total ? below : above) = middle;
  }
  return below;
}

}  // namespace

ZoneDeal DealTo(std::span<const size_t> members, size_t replicas) {
  const auto dealt = [&](size_t each) {
    size_t sum = 0;
    for (const size_t count : members) sum += std::min(count, each);
    return sum;
  };
  ZoneDeal deal{.replicas = std::min(replicas, dealt(std::numeric_limits<size_t>::max()))};
  while (dealt(deal.each) < deal.replicas && dealt(deal.each + 1) <= deal.replicas) ++deal.each;
  deal.extra = deal.replicas - dealt(deal.each);
  return deal;
}

std::vector<Positions> BestShares(std::span<const Member> members, size_t replicas) {
  assert(replicas >= 1);
  assert(replicas <= Ring::kPreferencesMax);
  std::map<std::string_view, Zone> zones;
  for (const Member& member : members) {
    if (member.weight > 0) zones[member.zone].weights.push_back(member.weight);
  }
  std::vector<size_t> sizes;
  for (const auto& [name, zone] : zones) sizes.push_back(zone.weights.size());
  const ZoneDeal deal = DealTo(sizes, replicas);
  for (auto& [name, zone] : zones) {
    zone.least = std::min(zone.weights.size(), deal.each) * kAllPositions;
    zone.most = std::min(zone.weights.size(), deal.each + (deal.extra > 0 ? 1 : 0)) * kAllPositions;
  }

  const Level common = LevelOf(deal.replicas * kAllPositions, [&](Level level) {
    Positions sum = 0;
    for (const auto& [name, zone] : zones) sum += zone.At(level);
    return sum;
  });
  // A zone at a bound of its own has a level of its own.
  std::map<std::string_view, Level> level_of;
  for (const auto& [name, zone] : zones) {
    const Positions total = zone.At(common);
    level_of[name] = total == zone.Unbounded(common)
                         ? common
                         : LevelOf(total, [&](Level level) { return zone.Unbounded(level); });
  }
  std::vector<Positions> shares;
  for (const Member& member : members) {
    shares.push_back(member.weight == 0 ? 0 : AtLevel(member.weight, level_of[member.zone]));
  }
  return shares;
}

}  // namespace gyre
