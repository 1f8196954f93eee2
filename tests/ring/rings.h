// Small rings for tests, and the rule of preference lists spelled out the slow way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ring/allocator.h"
#include "ring/ring.h"

namespace gyre {

inline constexpr uint64_t kLast = UINT64_MAX;  // the largest token

inline Member Node(uint64_t id, std::vector<uint64_t> tokens, std::string zone = "") {
  Member member{.id = NodeId{id}, .zone = std::move(zone), .tokens = {}};
  for (const uint64_t token : tokens) member.tokens.push_back(Token{token});
  return member;
}

inline Member HashedNode(uint64_t id, size_t tokens, std::string zone = "") {
  return {.id = NodeId{id}, .zone = std::move(zone), .tokens = HashedTokens(NodeId{id}, tokens)};
}

// Members 1 to `count`; with `zones` > 0 they are dealt in turn to zones "z0", "z1" and so on.
inline std::vector<Member> HashedNodes(size_t count, size_t tokens, size_t zones = 0) {
  std::vector<Member> members;
  for (size_t i = 0; i < count; ++i) {
    members.push_back(
        HashedNode(i + 1, tokens, zones == 0 ? "" : std::string("z").append(std::to_string(i % zones))));
  }
  return members;
}

inline Ring RingOf(std::vector<Member> members) {
  auto ring = Ring::Build(std::move(members));
  EXPECT_TRUE(ring.ok()) << ring.status();
  return *std::move(ring);
}

inline std::vector<Member> MembersOf(const Ring& ring) {
  return {ring.members().begin(), ring.members().end()};
}

// The ids of the whole preference list at `token`.
inline std::vector<uint64_t> IdsAt(const Ring& ring, Token token) {
  std::vector<uint64_t> ids;
  for (const MemberIndex member : ring.Preferences(token)) ids.push_back(ring.members()[member].id.value);
  return ids;
}

// What IdsAt should say: walk clockwise in rounds; in round r a member not yet picked is picked if its zone
// has been picked fewer than r times.
inline std::vector<uint64_t> WalkedIdsAt(const std::vector<Member>& members, Token token) {
  std::vector<std::pair<uint64_t, uint64_t>> walk;  // (steps clockwise, id)
  std::map<uint64_t, std::string> zone_of;
  for (const Member& member : members) {
    for (const Token at : member.tokens) walk.emplace_back(at.value - token.value, member.id.value);
    if (!member.tokens.empty()) zone_of[member.id.value] = member.zone;
  }
  std::sort(walk.begin(), walk.end());
  std::vector<uint64_t> ids;
  std::set<uint64_t> picked;
  std::map<std::string, size_t> times;
  for (size_t round = 1; picked.size() < zone_of.size(); ++round) {
    for (const auto& [steps, id] : walk) {
      if (picked.contains(id) || times[zone_of[id]] >= round) continue;
      picked.insert(id);
      ++times[zone_of[id]];
      ids.push_back(id);
    }
  }
  ids.resize(std::min(ids.size(), Ring::kPreferencesMax));
  return ids;
}

// Each end of an arc, its neighbours, and the ends of the number line: where an answer could change.
inline std::vector<Token> TellingTokens(const Ring& ring) {
  std::vector<Token> tokens = {Token{0}, Token{kLast}};
  for (size_t arc = 0; arc < ring.arc_count(); ++arc) {
    const uint64_t end = ring.ArcEnd(arc).value;
    for (const uint64_t token : {end - 1, end, end + 1}) tokens.push_back(Token{token});
  }
  return tokens;
}

inline std::vector<std::string> Keys(size_t count) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < count; ++i) keys.push_back(std::string("key-").append(std::to_string(i)));
  return keys;
}

}  // namespace gyre
