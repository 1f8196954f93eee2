// How even the load is for a number of tokens: the table that ring/README.md quotes.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/ring/rings.h"

namespace gyre {
namespace {

constexpr size_t kKeys = 100000;
constexpr size_t kTokens[] = {1, 10, 16, 128, 150, 256, 1000};
constexpr size_t kNodes[] = {2, 4, 10, 50};

// The keys that the fullest node owns, relative to an even share.
double MaxToAverage(size_t nodes, size_t tokens, const std::vector<Token>& keys) {
  const Ring ring = RingOf(HashedNodes(nodes, tokens));
  std::vector<size_t> loads(nodes);
  for (const Token key : keys) ++loads[ring.Preferences(key).front()];
  const size_t most = *std::ranges::max_element(loads);
  return static_cast<double>(most * nodes) / static_cast<double>(keys.size());
}

TEST(Load, IsWhatTheReadmeSaysAndTightensWithTokens) {
  std::vector<Token> keys;
  for (const std::string& key : Keys(kKeys)) keys.push_back(TokenOf(key));

  std::string table =
      "| tokens per node | 2 nodes | 4 nodes | 10 nodes | 50 nodes |\n"
      "|---:|---:|---:|---:|---:|\n";
  for (const size_t tokens : kTokens) {
    table.append("| ").append(std::to_string(tokens)).append(" |");
    for (const size_t nodes : kNodes) {
      const double load = MaxToAverage(nodes, tokens, keys);
      EXPECT_GE(load, 1.0);
      EXPECT_LE(load, static_cast<double>(nodes));
      if (tokens >= 128) {
        EXPECT_LT(load, 1.35) << tokens << " tokens, " << nodes << " nodes";
      }
      if (tokens >= 1000) {
        EXPECT_LT(load, 1.15) << tokens << " tokens, " << nodes << " nodes";
      }
      char cell[16];
      std::snprintf(cell, sizeof cell, " %.2f |", load);
      table.append(cell);
    }
    table.append("\n");
  }
  std::cout << "Keys on the fullest node / average, " << kKeys << " keys\n" << table;

  std::ifstream file(GYRE_SOURCE_DIR "/ring/README.md");
  const std::string readme(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(readme.find(table), std::string::npos) << "ring/README.md must quote the table above.";
}

}  // namespace
}  // namespace gyre
