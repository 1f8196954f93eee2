// Small texts of the command line: replicas, durations, base64, byte strings in JSON.
#include <gtest/gtest.h>

#include "client/cli/text.h"

namespace gyre::cli {
namespace {

using std::chrono::milliseconds;
using Json = nlohmann::ordered_json;

TEST(Text, ReplicasAreNamesOrAnyNumber) {
  EXPECT_EQ(ParseReplicas("one"), Replicas::One());
  EXPECT_EQ(ParseReplicas("quorum"), Replicas::Quorum());
  EXPECT_EQ(ParseReplicas("all"), Replicas::All());
  for (const int64_t count : {int64_t{2}, int64_t{0}, int64_t{-1}, int64_t{1} << 31}) {
    EXPECT_EQ(ParseReplicas(std::to_string(count)), Replicas::Count(count));
    EXPECT_EQ(ToText(Replicas::Count(count)), std::to_string(count));
  }
  for (const char* wrong : {"x", "", "2x", "ONE", " 1", "99999999999999999999"}) {
    EXPECT_EQ(ParseReplicas(wrong), std::nullopt) << wrong;
  }
}

TEST(Text, DurationsHaveAUnit) {
  EXPECT_EQ(ParseDuration("500ms"), milliseconds(500));
  EXPECT_EQ(ParseDuration("5s"), milliseconds(5000));
  EXPECT_EQ(ParseDuration("2m"), milliseconds(120000));
  EXPECT_EQ(ParseDuration("1h"), milliseconds(3600000));
  EXPECT_EQ(ParseDuration("7d"), milliseconds(604800000));
  for (const char* wrong : {"", "5", "s", "-1s", "5 s", "9223372036854775807d"}) {
    EXPECT_EQ(ParseDuration(wrong), std::nullopt) << wrong;
  }
}

TEST(Text, ListsWithoutEmptyParts) {
  EXPECT_EQ(SplitList("a:1,b:2"), (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(SplitList(",a:1,,"), (std::vector<std::string>{"a:1"}));
  EXPECT_TRUE(SplitList("").empty());
}

TEST(Text, Base64) {
  const std::pair<std::string, std::string> pairs[] = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {std::string("\0\xff", 2), "AP8="}};
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(ToBase64(bytes), text);
    EXPECT_EQ(FromBase64(text), bytes);
  }
  for (const char* wrong : {"Zg=", "Zg", "Z===", "Z!==", "Zg==Zg=="})
    EXPECT_EQ(FromBase64(wrong), std::nullopt) << wrong;
}

TEST(Text, Utf8) {
  for (const char* right : {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf"}) {
    EXPECT_TRUE(IsUtf8(right)) << right;
  }
  EXPECT_TRUE(IsUtf8(std::string("a\0b", 3)));
  for (const char* wrong :
       {"\xff", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xe2\x82"}) {
    EXPECT_FALSE(IsUtf8(wrong));
  }
}

TEST(Text, ByteStringsInJson) {
  Json json;
  AddBytes(json, "key", "k\xc3\xa9y");
  AddBytes(json, "value", std::string("\xff\0", 2));
  EXPECT_EQ(json.dump(), "{\"key\":\"k\xc3\xa9y\",\"value_base64\":\"/wA=\"}");
  EXPECT_EQ(TakeBytes(json, "key"), "k\xc3\xa9y");
  EXPECT_EQ(TakeBytes(json, "value"), std::string("\xff\0", 2));
  EXPECT_EQ(TakeBytes(json, "other"), std::nullopt);
  EXPECT_EQ(TakeBytes(Json{{"key", 5}}, "key"), std::nullopt);
  EXPECT_EQ(TakeBytes(Json{{"key_base64", "!"}}, "key"), std::nullopt);
}

}  // namespace
}  // namespace gyre::cli
