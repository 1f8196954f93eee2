// What a change of nodes moves under a scheme of placement, counted key by key.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/placements.h"

namespace gyre {

// Ids as nodes choose them: at random.
inline std::vector<NodeId> PlacementNodes(size_t count) {
  std::vector<NodeId> nodes;
  for (size_t i = 0; i < count; ++i) {
    nodes.push_back(NodeId{TokenOf(std::string("node-").append(std::to_string(i))).value});
  }
  return nodes;
}

inline std::vector<Token> PlacementKeys(size_t count) {
  std::vector<Token> keys;
  for (size_t i = 0; i < count; ++i) keys.push_back(TokenOf(std::string("key-").append(std::to_string(i))));
  return keys;
}

// As parts of all keys.
struct Moves {
  double all = 0;
  double between_stayers = 0;  // from a node that stays to one that was there before
};

// `changed` is the node that came or left.
inline Moves MovesOf(const Placed& before, const Placed& after, NodeId changed,
                     const std::vector<Token>& keys) {
  Moves moves;
  for (const Token key : keys) {
    const NodeId from = before.NodeOf(key);
    const NodeId to = after.NodeOf(key);
    if (from == to) continue;
    moves.all += 1;
    if (from != changed && to != changed) moves.between_stayers += 1;
  }
  moves.all /= static_cast<double>(keys.size());
  moves.between_stayers /= static_cast<double>(keys.size());
  return moves;
}

// Keys on the fullest node, relative to an even share.
inline double MaxToAverageOf(const Placed& placed, size_t nodes, const std::vector<Token>& keys) {
  std::map<NodeId, size_t> loads;
  for (const Token key : keys) ++loads[placed.NodeOf(key)];
  size_t most = 0;
  for (const auto& [node, load] : loads) most = std::max(most, load);
  return static_cast<double>(most * nodes) / static_cast<double>(keys.size());
}

}  // namespace gyre
