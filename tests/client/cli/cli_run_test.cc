// Whole commands against a node in this process: exact bytes, JSON documents, exit codes.
#include <gtest/gtest.h>

#include "client/cli/session.h"
#include "tests/client/fake_kv.h"

namespace gyre::cli {
namespace {

class RunTest : public testing::Test {
 protected:
  // Runs one command; its stdout is in `out`, its stderr in `err`.
  int Gyre(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "gyre");
    arguments.insert(arguments.begin() + 1, {"--endpoints", node.address()});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = cli::Run(static_cast<int>(argv.size()), argv.data());
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return code;
  }
  bool Answer(const v1::SessionBatch& batch, v1::SessionReplies& replies) {
    for (const v1::SessionRequest& request : batch.requests()) {
      v1::SessionReply& reply = *replies.add_replies();
      reply.set_id(request.id());
      if (request.has_put()) {
        values = {request.put().value()};
        reply.mutable_put()->set_context("ctx");
        reply.mutable_put()->set_acks(2);
      } else if (request.has_scan()) {
        v1::ScanRow& row = *reply.mutable_scan()->add_rows();
        row.set_key("k");
        for (const std::string& value : values) row.add_values()->set_value(value);
      } else if (request.has_get()) {
        reply.mutable_get()->set_context("ctx");
        for (const std::string& value : values) reply.mutable_get()->add_values()->set_value(value);
      } else {
        values = {};
        reply.mutable_delete_()->set_context("ctx");
      }
    }
    return true;
  }

  std::vector<std::string> values;
  std::string out;
  std::string err;
  FakeKv node{
      [this](const v1::SessionBatch& batch, v1::SessionReplies& replies) { return Answer(batch, replies); }};
};

TEST_F(RunTest, BytesAreExact) {
  for (const char* value : {"v", "", "{}", "[1,2]", "a b\n"}) {
    ASSERT_EQ(Gyre({"put", "k", value}), kDone) << err;
    EXPECT_EQ(Gyre({"get", "k"}), kDone) << err;
    EXPECT_EQ(out, value);
  }
  EXPECT_EQ(Gyre({"put", "--key-base64", "AGs=", "--value-base64", "AP8="}), kDone) << err;
  EXPECT_EQ(Gyre({"get", "k"}), kDone);
  EXPECT_EQ(out, std::string("\0\xff", 2));
  EXPECT_EQ(Gyre({"put", "--", "-k", "-v"}), kDone) << err;
  EXPECT_EQ(values[0], "-v");
}

TEST_F(RunTest, JsonDocuments) {
  EXPECT_EQ(Gyre({"-o", "json", "put", "k", "v"}), kDone);
  EXPECT_EQ(out, "{\"key\":\"k\",\"context\":\"Y3R4\",\"acks\":2,\"fallbacks\":0}\n");
  EXPECT_EQ(Gyre({"get", "k", "-o", "json"}), kDone);
  EXPECT_EQ(out,
            "{\"key\":\"k\",\"context\":\"Y3R4\",\"found\":true,"
            "\"values\":[{\"value\":\"v\",\"dot\":\"\",\"expires_at\":null}]}\n");
  EXPECT_EQ(Gyre({"export"}), kDone);
  EXPECT_EQ(out, "{\"key\":\"k\",\"value\":\"v\"}\n");
  EXPECT_EQ(Gyre({"scan", "--keys-only"}), kDone);
  EXPECT_EQ(out, "k\n");
  EXPECT_EQ(Gyre({"delete", "k", "-o", "json"}), kDone);
  EXPECT_EQ(out, "{\"key\":\"k\",\"context\":\"Y3R4\"}\n");
}

TEST_F(RunTest, ExitCodes) {
  EXPECT_EQ(Gyre({"get", "k"}), kKeyNotFound);
  values = {"a", "b"};
  EXPECT_EQ(Gyre({"get", "k"}), kConflict);
  EXPECT_EQ(out, "");
  EXPECT_EQ(Gyre({"get", "k", "--siblings"}), kDone);
  EXPECT_EQ(out, "a\nb\n");
  EXPECT_EQ(Gyre({"get", "k", "-r", "x", "-o", "json"}), kUsage);
  EXPECT_EQ(err.find("{\"error\":{\"code\":\"INVALID_ARGUMENT\",\"message\":\"-r: "), 0u) << err;
  EXPECT_EQ(Gyre({"put", "k"}), kUsage);
  EXPECT_EQ(Gyre({"nonsense"}), kUsage);
  EXPECT_EQ(Gyre({"--timeout", "5", "get", "k"}), kUsage);
}

TEST_F(RunTest, AnEmptyFlagIsNotOneThatWasNotGiven) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> commands = {
      {"-w", {"put", "k", "v", "-w", ""}},
      {"--context", {"put", "k", "v", "--context", ""}},
      {"--ttl", {"put", "k", "v", "--ttl", ""}},
      {"--file", {"put", "k", "--file", ""}},
      {"--key-base64", {"put", "k", "v", "--key-base64", ""}},
      {"-r", {"get", "k", "-r", ""}},
      {"-w", {"delete", "k", "-w", ""}},
      {"--context", {"delete", "k", "--context", ""}},
      {"--r", {"keyspace", "set", "a", "--r", ""}},
      {"--w", {"keyspace", "create", "a", "--w", ""}},
      {"--ttl", {"keyspace", "set", "a", "--ttl", ""}},
      {"--node", {"node", "stats", "--node", ""}},
      {"--keyspace", {"get", "k", "-k", ""}},
      {"--timeout", {"get", "k", "--timeout", ""}},
      {"--output", {"get", "k", "--output", ""}},
  };
  for (const auto& [flag, command] : commands) {
    EXPECT_EQ(Gyre(command), kUsage) << flag;
    EXPECT_EQ(err.find("gyre: " + flag + ": must not be empty"), 0u) << err;
  }
  EXPECT_EQ(Gyre({"put", "k", "v", "--context="}), kUsage);
  EXPECT_EQ(err.find("gyre: --context: "), 0u) << err;
  EXPECT_EQ(Gyre({"-o", "json", "put", "k", "v", "-w", ""}), kUsage);
  EXPECT_EQ(err.find("{\"error\":{\"code\":\"INVALID_ARGUMENT\",\"message\":\"-w: "), 0u) << err;
  EXPECT_TRUE(values.empty());
  EXPECT_EQ(Gyre({"put", "k", ""}), kDone) << err;
  EXPECT_EQ(Gyre({"put", "k", "--value-base64", ""}), kDone) << err;
}

TEST_F(RunTest, BenchCounts) {
  for (const char* op : {"put", "get", "mixed"}) {
    ASSERT_EQ(Gyre({"bench", "--op", op, "--seconds", "0.05", "--in-flight", "8", "-o", "json"}), kDone)
        << err;
    const Json report = Json::parse(out);
    EXPECT_EQ(report["op"], op);
    EXPECT_GE(report["operations"], 8);
    EXPECT_EQ(report["errors"], Json::object());
  }
  ASSERT_EQ(Gyre({"bench", "--op", "get", "--seconds", "0.05", "--rate", "200", "-o", "json"}), kDone) << err;
  EXPECT_EQ(Json::parse(out)["operations"], 10);
}

}  // namespace
}  // namespace gyre::cli
