// How a restore writes a key: by what the cluster has, once, and never over what is newer.
#include "client/backup/restore_writer.h"

#include <gtest/gtest.h>

#include "tests/client/mock_connection.h"

namespace gyre::backup {
namespace {

using Version = RestoreWriter::Version;

const Version kMilk = {.bytes = "milk", .expires_at_ms = 0, .write_id = std::string(16, 'm')};
const Version kBread = {.bytes = "bread", .expires_at_ms = 5, .write_id = std::string(16, 'b')};

struct Case {
  const char* what;
  std::vector<Value> found;
  std::vector<Version> versions;
  bool begun;
  bool overwrite;
  std::vector<std::string> puts;  // values, in order
  bool with_context;
  uint64_t written;
};

const Value kFoundMilk = {.bytes = "milk"};
const Value kFoundBread = {.bytes = "bread", .expires_at_ms = 5};
const Value kFoundOther = {.bytes = "other"};

const Case kCases[] = {
    {"what is not there is written", {}, {kMilk}, false, false, {"milk"}, true, 1},
    {"all siblings", {}, {kMilk, kBread}, false, false, {"milk", "bread"}, true, 1},
    {"what is there is kept", {kFoundOther}, {kMilk}, false, false, {}, false, 0},
    {"also when it is one of the siblings", {kFoundMilk}, {kMilk, kBread}, false, false, {}, false, 0},
    {"what is equal needs no write", {kFoundBread, kFoundMilk}, {kMilk, kBread}, false, true, {}, false, 0},
    {"the same bytes with another expiry are another",
     {kFoundBread},
     {{"bread", 6, {}}},
     false,
     false,
     {},
     false,
     0},
    {"overwriting replaces what was read",
     {kFoundOther},
     {kMilk, kBread},
     false,
     true,
     {"milk", "bread"},
     true,
     1},
    {"an interrupted attempt is gone on with",
     {kFoundMilk},
     {kMilk, kBread},
     true,
     false,
     {"bread"},
     false,
     1},
    {"also when overwriting", {kFoundMilk}, {kMilk, kBread}, true, true, {"bread"}, false, 1},
    {"what an interrupted attempt wrote counts", {kFoundMilk}, {kMilk}, true, false, {}, false, 1},
    {"what came meanwhile is kept", {kFoundOther}, {kMilk}, true, false, {}, false, 0},
    {"what came beside it, too", {kFoundMilk, kFoundOther}, {kMilk}, true, false, {}, false, 0},
    {"equal siblings are counted", {kFoundMilk}, {kMilk, kMilk}, true, false, {"milk"}, false, 1},
    {"an attempt that was not begun", {}, {kMilk}, true, false, {"milk"}, true, 1},
};

TEST(RestoreWriter, WritesByWhatItFinds) {
  for (const Case& c : kCases) {
    auto connection = std::make_shared<MockConnection>(1);
    connection->script.push_back(
        {.fate = Fate::kAnswered, .status = {}, .reply = GetResult{.values = c.found, .context = "context"}});
    for (size_t i = 0; i < c.puts.size(); ++i) {
      connection->script.push_back({.fate = Fate::kAnswered, .status = {}, .reply = PutResult{}});
    }
    RestoreWriter writer(Client(connection, {}), c.overwrite);
    ASSERT_TRUE(writer.Write({.keyspace = "k", .key = "cart", .versions = c.versions, .begun = c.begun}));
    ASSERT_TRUE(writer.Drain().ok()) << c.what;
    EXPECT_EQ(writer.counts().written, c.written) << c.what;
    EXPECT_EQ(writer.counts().kept, 1 - c.written) << c.what;
    ASSERT_EQ(connection->sent.size(), 1 + c.puts.size()) << c.what;
    EXPECT_EQ(std::get<GetRequest>(connection->sent[0].request).r, Replicas::Quorum());
    for (size_t i = 0; i < c.puts.size(); ++i) {
      const auto& put = std::get<PutRequest>(connection->sent[i + 1].request);
      EXPECT_EQ(put.value, c.puts[i]) << c.what;
      EXPECT_EQ(put.keyspace, "k");
      EXPECT_EQ(put.retry, c.begun) << c.what;
      EXPECT_EQ(put.context.has_value(), c.with_context) << c.what;
      EXPECT_EQ(put.write_id, std::string(16, c.puts[i][0])) << c.what;
      EXPECT_EQ(put.expires_at_ms, c.puts[i] == "bread" ? 5u : 0u) << c.what;
      EXPECT_EQ(put.ttl, std::nullopt);
    }
  }
}

TEST(RestoreWriter, AFailureNamesItsKeyAndEndsIt) {
  auto connection = std::make_shared<MockConnection>(1);
  connection->script.push_back({.fate = Fate::kAnswered, .status = {}, .reply = GetResult{}});
  connection->script.push_back({.fate = Fate::kAnswered,
                                .status = absl::InvalidArgumentError("value has too many bytes"),
                                .reply = {}});
  RestoreWriter writer(Client(connection, {}), false);
  EXPECT_TRUE(writer.Write({.keyspace = "k", .key = "cart", .versions = {kMilk}}));
  EXPECT_FALSE(writer.Write({.keyspace = "k", .key = "next", .versions = {kMilk}}));
  const absl::Status failure = writer.Drain();
  EXPECT_TRUE(absl::IsInvalidArgument(failure));
  EXPECT_EQ(failure.message(), "key \"cart\" of keyspace k: value has too many bytes");
}

}  // namespace
}  // namespace gyre::backup
