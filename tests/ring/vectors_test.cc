// Keeps ring/vectors.json true: what it tells clients in other languages is what this ring does.
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ring/allocator.h"
#include "ring/ring.h"

namespace gyre {
namespace {

using Json = nlohmann::json;

Json Vectors() {
  std::ifstream file(GYRE_SOURCE_DIR "/ring/vectors.json");
  return Json::parse(file);
}

std::string FromBase64(std::string_view text) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t buffer = 0;
  int bits = 0;
  for (const char c : text.substr(0, text.find('='))) {
    buffer = buffer << 6 | static_cast<uint32_t>(kAlphabet.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(buffer >> bits & 0xff));
  }
  return bytes;
}

NodeId IdOf(const Json& text) {
  NodeId id;
  EXPECT_TRUE(ParseNodeId(text.get<std::string>(), id)) << text;
  return id;
}

// Tokens are written as ids are.
std::vector<Token> TokensOf(const Json& texts) {
  std::vector<Token> tokens;
  for (const Json& text : texts) tokens.push_back(Token{IdOf(text).value});
  return tokens;
}

Ring RingOfVectors(const Json& layout) {
  std::vector<Member> members;
  for (const Json& member : layout.at("members")) {
    members.push_back({.id = IdOf(member.at("id")),
                       .zone = member.at("zone").get<std::string>(),
                       .weight = member.at("weight").get<uint32_t>(),
                       .tokens = TokensOf(member.at("tokens"))});
  }
  auto ring = Ring::Build(std::move(members));
  EXPECT_TRUE(ring.ok()) << ring.status();
  return *std::move(ring);
}

TEST(Vectors, Keys) {
  const Json vectors = Vectors();
  ASSERT_EQ(vectors.at("keys").size(), 27u);
  for (const Json& item : vectors.at("keys")) {
    const std::string key = item.contains("key") ? item.at("key").get<std::string>()
                                                 : FromBase64(item.at("key_base64").get<std::string>());
    EXPECT_EQ(ToString(TokenOf(key)), item.at("token")) << item;
  }
}

TEST(Vectors, HashedTokens) {
  const Json vectors = Vectors();
  ASSERT_EQ(vectors.at("hashed").size(), 6u);
  for (const Json& item : vectors.at("hashed")) {
    EXPECT_EQ(HashedTokens(IdOf(item.at("node")), item.at("count").get<size_t>()),
              TokensOf(item.at("tokens")))
        << item;
  }
}

TEST(Vectors, PreferenceLists) {
  const Json vectors = Vectors();
  ASSERT_EQ(vectors.at("layouts").size(), 16u);
  for (const Json& layout : vectors.at("layouts")) {
    const Ring ring = RingOfVectors(layout);
    ASSERT_FALSE(layout.at("preferences").empty()) << layout.at("name");
    for (const Json& item : layout.at("preferences")) {
      Json nodes = Json::array();
      for (const MemberIndex member : ring.Preferences(Token{IdOf(item.at("token")).value})) {
        nodes.push_back(ToString(ring.members()[member].id));
      }
      EXPECT_EQ(nodes, item.at("nodes")) << layout.at("name") << " at " << item.at("token");
    }
  }
}

}  // namespace
}  // namespace gyre
