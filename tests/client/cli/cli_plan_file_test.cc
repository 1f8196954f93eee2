// Plan files: what is written is read back; anything else is refused with what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/plan_file.h"

namespace gyre::cli {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

ClusterPlan Everything() {
  return {.base_epoch = 7,
          .base_digest = 0xfedcba9876543210,
          .hash = 0x0123456789abcdef,
          .changes = {.add = {"000000000000000a"},
                      .remove = {"000000000000000b"},
                      .replace = {{"000000000000000c", "000000000000000d"}},
                      .weight = {{"000000000000000a", 2}},
                      .zone = {{"000000000000000a", ""}},
                      .tokens = {{"000000000000000a", 32}},
                      .keyspace_n = {{"default", 5}}},
          .moves = {{"000000000000000b", "000000000000000a", 3, 1000, 123456789}},
          .before = {1.1, 1.0 / 3},
          .after = {1, 1e-7},
          .warnings = {"node x is down"},
          .loss = {"much"}};
}

std::string Why(std::string_view text) {
  const absl::Status status = PlanFromJson(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(PlanFile, ReadsWhatItWrote) {
  for (const ClusterPlan& plan : {Everything(), ClusterPlan{}}) {
    for (const int indent : {-1, 2}) {
      const auto read = PlanFromJson(PlanToJson(plan).dump(indent));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(*read, plan);
    }
  }
  const Json json = PlanToJson(Everything());
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["base"].dump(), R"({"version":7,"digest":"fedcba9876543210"})");
  EXPECT_EQ(json["hash"], "0123456789abcdef");
  EXPECT_EQ(json["changes"]["replace"].dump(), R"({"000000000000000c":"000000000000000d"})");
  EXPECT_EQ(
      json["moves"][0].dump(),
      R"({"from":"000000000000000b","to":"000000000000000a","ranges":3,"keys":1000,"bytes":123456789})");
}

TEST(PlanFile, RefusesWhatIsNone) {
  const std::string text = PlanToJson(Everything()).dump(2);
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_THAT(Why(text.substr(0, size)), HasSubstr("not JSON"));
  EXPECT_THAT(Why("[]"), HasSubstr("not a plan"));
  EXPECT_THAT(Why("1"), HasSubstr("not a plan"));
  EXPECT_THAT(Why("{}"), HasSubstr("not a plan"));
  EXPECT_THAT(Why("{\"format\":1}"), HasSubstr("not a plan"));
  EXPECT_THAT(Why("{\"format\":\"1\",\"checksum\":\"\"}"), HasSubstr("not a plan"));
  EXPECT_THAT(Why("{\"format\":2,\"checksum\":\"\"}"), HasSubstr("format 2"));
  EXPECT_THAT(Why("{\"format\":1,\"checksum\":\"\"}"), HasSubstr("edited"));
}

TEST(PlanFile, NoticesEveryEdit) {
  const Json original = PlanToJson(Everything());
  for (const auto& [name, value] : original.items()) {
    if (name == "format") continue;
    Json without = original;
    without.erase(name);
    EXPECT_THAT(Why(without.dump()), name == "checksum" ? HasSubstr("not a plan") : HasSubstr("edited"))
        << name;
    Json other = original;
    other[name] = 5;
    EXPECT_THAT(Why(other.dump()), HasSubstr("edited")) << name;
  }
  Json more = original;
  more["note"] = "x";
  EXPECT_THAT(Why(more.dump()), HasSubstr("edited"));
  Json weight = original;
  weight["changes"]["weight"]["000000000000000a"] = 3;
  EXPECT_THAT(Why(weight.dump()), HasSubstr("edited"));
}

}  // namespace
}  // namespace gyre::cli
