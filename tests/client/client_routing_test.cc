// Which node a call goes to, by preference and health.
#include <gtest/gtest.h>

#include "client/routing.h"

namespace gyre {
namespace {

using State = Routing::State;

// Three nodes, one token each, so that each key has one order of preference. Node i is peer 10 * i.
Routing Three(State first, State second, State third) {
  Routing::Input input{.epoch = 4, .nodes = {}, .replicas = {{"default", 3}, {"pair", 2}}};
  const State states[] = {first, second, third};
  for (uint64_t i = 1; i <= 3; ++i) {
    input.nodes.push_back({.member = {.id = NodeId{i}, .zone = "", .weight = 1, .tokens = {Token{i << 62}}},
                           .peer = static_cast<PeerId>(10 * i),
                           .state = states[i - 1]});
  }
  input.nodes[2].member.tokens = {Token{~uint64_t{0}}};
  return *Routing::Build(std::move(input));
}

// A key on each node's arc.
std::string KeyOn(uint64_t begin_exclusive, uint64_t end) {
  for (int i = 0;; ++i) {
    const std::string key = std::to_string(i);
    const uint64_t token = TokenOf(key).value;
    if (token > begin_exclusive && token <= end) return key;
  }
}
const std::string kFirst = KeyOn(0, uint64_t{1} << 62);
const std::string kSecond = KeyOn(uint64_t{1} << 62, uint64_t{2} << 62);

const TimePoint kNow{std::chrono::seconds(100)};

TEST(Routing, TheFirstReplicaThatIsUp) {
  EXPECT_EQ(Three(State::kUp, State::kUp, State::kUp).Pick("default", kFirst, kNow, {}, {}), 10u);
  EXPECT_EQ(Three(State::kUp, State::kUp, State::kUp).Pick("default", kSecond, kNow, {}, {}), 20u);
  EXPECT_EQ(Three(State::kDown, State::kUp, State::kUp).Pick("default", kFirst, kNow, {}, {}), 20u);
  EXPECT_EQ(Three(State::kSuspect, State::kDown, State::kUp).Pick("default", kFirst, kNow, {}, {}), 30u);
}

TEST(Routing, WhenNoneIsUpTheLeastIll) {
  EXPECT_EQ(Three(State::kDown, State::kSuspect, State::kDown).Pick("default", kFirst, kNow, {}, {}), 20u);
  EXPECT_EQ(Three(State::kDown, State::kDown, State::kDown).Pick("default", kFirst, kNow, {}, {}), 10u);
}

TEST(Routing, OwnExperienceCountsMoreThanHearsay) {
  std::vector<TimePoint> avoid_until(31);
  avoid_until[10] = kNow + std::chrono::seconds(1);
  const Routing routing = Three(State::kUp, State::kDown, State::kDown);
  EXPECT_EQ(routing.Pick("default", kFirst, kNow, avoid_until, {}), 20u);
  EXPECT_EQ(routing.Pick("default", kFirst, kNow + std::chrono::seconds(1), avoid_until, {}), 10u);
}

TEST(Routing, WhatWasTriedIsLeftOut) {
  const Routing routing = Three(State::kUp, State::kUp, State::kUp);
  const std::vector<PeerId> first = {10};
  const std::vector<PeerId> all = {10, 20, 30};
  EXPECT_EQ(routing.Pick("default", kFirst, kNow, {}, first), 20u);
  EXPECT_EQ(routing.Pick("default", kFirst, kNow, {}, all), std::nullopt);
}

TEST(Routing, NodesOutsideOfTheReplicasComeLast) {
  const Routing routing = Three(State::kDown, State::kDown, State::kUp);
  EXPECT_EQ(routing.Pick("pair", kFirst, kNow, {}, {}), 30u);
  EXPECT_EQ(routing.epoch(), 4u);
}

TEST(Routing, ANodeWithoutAddressKeepsItsPlaceButIsNotPicked) {
  Routing::Input input{.epoch = 1, .nodes = {}, .replicas = {}};
  for (uint64_t i = 1; i <= 2; ++i) {
    input.nodes.push_back({.member = {.id = NodeId{i}, .zone = "", .weight = 1, .tokens = {Token{i << 62}}},
                           .peer = i == 1 ? kNoPeer : 7,
                           .state = State::kUp});
  }
  EXPECT_EQ(Routing::Build(std::move(input))->Pick("default", kFirst, kNow, {}, {}), 7u);
}

TEST(Routing, NoNodesNoRing) { EXPECT_FALSE(Routing::Build({}).ok()); }

TEST(PickAny, InOrderButTheWellFirst) {
  const std::vector<PeerId> peers = {0, 1, 2};
  const std::vector<TimePoint> avoid_until = {kNow + std::chrono::seconds(1), TimePoint(), TimePoint()};
  const std::vector<PeerId> tried = {1};
  const std::vector<PeerId> two = {1, 2};
  EXPECT_EQ(PickAny(peers, kNow, {}, {}), 0u);
  EXPECT_EQ(PickAny(peers, kNow, avoid_until, {}), 1u);
  EXPECT_EQ(PickAny(peers, kNow, avoid_until, tried), 2u);
  EXPECT_EQ(PickAny(peers, kNow, avoid_until, two), 0u);
  EXPECT_EQ(PickAny(peers, kNow, {}, peers), std::nullopt);
}

}  // namespace
}  // namespace gyre
