// The best possible shares: in proportion to weight, within what members and zones can hold.
#include "ring/best_share.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "ring/ownership.h"
#include "tests/ring/rings.h"

namespace gyre {
namespace {

struct Spec {
  const char* zone;
  uint32_t weight;
};

std::vector<double> Best(const std::vector<Spec>& specs, size_t replicas) {
  std::vector<Member> members;
  for (const Spec& spec : specs) {
    members.push_back(
        {.id = NodeId{members.size() + 1}, .zone = spec.zone, .weight = spec.weight, .tokens = {}});
  }
  std::vector<double> shares;
  for (const Positions share : BestShares(members, replicas)) shares.push_back(FractionOf(share));
  return shares;
}

void ExpectBest(const std::vector<Spec>& specs, size_t replicas, const std::vector<double>& expected) {
  const std::vector<double> shares = Best(specs, replicas);
  ASSERT_EQ(shares.size(), expected.size());
  for (size_t i = 0; i < shares.size(); ++i) EXPECT_NEAR(shares[i], expected[i], 1e-9) << i;
}

TEST(BestShares, AreInProportionToWeight) {
  ExpectBest({{"", 1}, {"", 1}, {"", 1}, {"", 1}}, 3, {.75, .75, .75, .75});
  ExpectBest({{"", 1}, {"", 2}, {"", 3}}, 1, {1 / 6., 2 / 6., 3 / 6.});
  ExpectBest({{"", 1}, {"", 0}}, 1, {1, 0});
}

TEST(BestShares, HoldAKeyAtMostOnce) {
  ExpectBest({{"", 1}, {"", 1}}, 3, {1, 1});
  ExpectBest({{"", 1}, {"", 1}, {"", 1}, {"", 1}, {"", 4}}, 3, {.5, .5, .5, .5, 1});
}

TEST(BestShares, AreBoundByZones) {
  // Each of three zones holds every key, however few nodes it has.
  ExpectBest({{"a", 1}, {"b", 1}, {"b", 1}, {"c", 1}, {"c", 3}}, 3, {1, .5, .5, .25, .75});
  // Four zones of which each holds a key at most once.
  ExpectBest({{"a", 9}, {"b", 1}, {"c", 1}, {"d", 1}}, 3, {1, 2 / 3., 2 / 3., 2 / 3.});
  // Of two zones one gives a second replica; the smaller one can give one at most.
  ExpectBest({{"a", 1}, {"b", 1}, {"b", 1}}, 2, {1, .5, .5});
  ExpectBest({{"a", 1}, {"b", 1}, {"b", 1}, {"b", 1}}, 3, {1, 2 / 3., 2 / 3., 2 / 3.});
}

TEST(DealTo, IsWhatPreferenceListsDeal) {
  EXPECT_EQ(DealTo(std::vector<size_t>{5}, 3), (ZoneDeal{3, 3, 0}));
  EXPECT_EQ(DealTo(std::vector<size_t>{5, 5, 5}, 3), (ZoneDeal{3, 1, 0}));
  EXPECT_EQ(DealTo(std::vector<size_t>{5, 5}, 3), (ZoneDeal{3, 1, 1}));
  EXPECT_EQ(DealTo(std::vector<size_t>{1, 5}, 3), (ZoneDeal{3, 2, 0}));
  EXPECT_EQ(DealTo(std::vector<size_t>{1, 1, 1, 1}, 3), (ZoneDeal{3, 0, 3}));
  EXPECT_EQ(DealTo(std::vector<size_t>{1, 1}, 3), (ZoneDeal{2, 1, 0}));

  for (const size_t zones : {1, 2, 3, 5}) {
    for (const size_t nodes : {5, 6, 11}) {
      const Ring ring = RingOf(HashedNodes(nodes, 8, zones));
      std::map<std::string, size_t> sizes;
      for (const Member& member : ring.members()) ++sizes[member.zone];
      std::vector<size_t> counts;
      for (const auto& [zone, count] : sizes) counts.push_back(count);
      const ZoneDeal deal = DealTo(counts, 3);
      for (size_t arc = 0; arc < ring.arc_count(); ++arc) {
        std::map<std::string, size_t> dealt;
        for (const MemberIndex i : ring.PrimariesOfArc(arc, 3)) ++dealt[ring.members()[i].zone];
        size_t extra = 0;
        for (const auto& [zone, count] : sizes) {
          const size_t each = std::min(deal.each, count);
          ASSERT_GE(dealt[zone], each);
          extra += dealt[zone] - each;
          ASSERT_LE(dealt[zone], each + 1);
        }
        ASSERT_EQ(extra, deal.extra);
      }
    }
  }
}

}  // namespace
}  // namespace gyre
