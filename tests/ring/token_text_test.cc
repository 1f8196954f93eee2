// Tokens of keys and the text of tokens and node ids.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "ring/token.h"

namespace gyre {
namespace {

TEST(TokenOf, IsXxh3WithSeedZero) {
  EXPECT_EQ(TokenOf("").value, 0x2d06800538d394c2u);  // the reference value that XXH3 publishes for no input
}

TEST(TokenOf, ReadsEveryByte) {
  EXPECT_NE(TokenOf(std::string_view("a\0b", 3)), TokenOf("a"));
  EXPECT_NE(TokenOf(std::string_view("\0", 1)), TokenOf(std::string_view("\0\0", 2)));
}

TEST(ToString, IsSixteenLowerCaseDigitsInTokenOrder) {
  EXPECT_EQ(ToString(Token{0}), "0000000000000000");
  EXPECT_EQ(ToString(Token{0xab}), "00000000000000ab");
  EXPECT_EQ(ToString(Token{UINT64_MAX}), "ffffffffffffffff");
  EXPECT_EQ(ToString(NodeId{0x0123456789abcdef}), "0123456789abcdef");
  EXPECT_LT(ToString(Token{9}), ToString(Token{10}));
  EXPECT_LT(ToString(Token{0x7fffffffffffffff}), ToString(Token{0x8000000000000000}));
}

TEST(ParseNodeId, ReadsWhatToStringWrote) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{0x0123456789abcdef}, UINT64_MAX}) {
    NodeId node{77};
    EXPECT_TRUE(ParseNodeId(ToString(NodeId{value}), node));
    EXPECT_EQ(node.value, value);
  }
}

TEST(ParseNodeId, RefusesAnythingElseAndLeavesTheNodeAlone) {
  for (const std::string_view text :
       {"", "1", "000000000000001", "00000000000000001", "000000000000000G", "000000000000000A",
        "0x00000000000001", " 000000000000001", "-000000000000001"}) {
    NodeId node{77};
    EXPECT_FALSE(ParseNodeId(text, node)) << text;
    EXPECT_EQ(node.value, 77u) << text;
  }
  NodeId node{77};
  EXPECT_FALSE(ParseNodeId(std::string_view("000000000000000\0", 16), node));
}

TEST(NodeId, ZeroNamesNoNode) {
  EXPECT_FALSE(NodeId{});
  EXPECT_TRUE(NodeId{1});
}

}  // namespace
}  // namespace gyre
