// Settings come from file, environment and flags in that precedence, and what is wrong is named with its
// place.
#include "server/config.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "server/settings.h"

namespace gyre {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() { std::filesystem::create_directories(dir_); }
  ~ConfigTest() override { std::filesystem::remove_all(dir_); }

  std::string File(const std::string& name, const std::string& content) {
    const std::string path = dir_ + "/" + name;
    std::ofstream(path) << content;
    return path;
  }

  static absl::StatusOr<Invocation> Read(std::vector<std::string> arguments,
                                         std::vector<std::string> environment = {}) {
    return ReadConfig(arguments, environment);
  }

  static std::string Error(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    const auto result = ReadConfig(arguments, environment);
    if (result.ok()) return "none";
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  }

  // The error of a file of this content, without the directory before its name.
  std::string FileError(const std::string& content) {
    std::string error = Error({"--config", File("g.toml", content)});
    if (error.starts_with(dir_ + "/")) error.erase(0, dir_.size() + 1);
    return error;
  }

  const std::string dir_ = testing::TempDir() + "gyre_config_test_" + std::to_string(getpid());
};

TEST_F(ConfigTest, WithoutAnythingTheDefaultsHold) {
  const auto read = Read({});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->action, Invocation::Action::kServe);
  const Config& c = read->config;
  EXPECT_EQ(c.node.data_dir, "gyre-data");
  EXPECT_EQ(c.node.zone, "");
  EXPECT_EQ(c.node.weight, 1u);
  EXPECT_EQ(c.listen.client, "127.0.0.1:7400");
  EXPECT_EQ(c.listen.peer, "127.0.0.1:7401");
  EXPECT_EQ(c.listen.http, "127.0.0.1:7402");
  EXPECT_EQ(c.listen.advertise_client, "127.0.0.1:7400");
  EXPECT_EQ(c.listen.advertise_peer, "127.0.0.1:7401");
  EXPECT_THAT(c.cluster.seeds, IsEmpty());
  EXPECT_EQ(c.cluster.bootstrap_expect, 1);
  EXPECT_FALSE(c.cluster.auto_join);
  EXPECT_EQ(c.storage.durability, Durability::kDisk);
  EXPECT_EQ(c.limits.value_bytes, 1048576u);
  EXPECT_EQ(c.limits.siblings, 32u);
  EXPECT_EQ(c.limits.record_bytes, 4194304u);
  EXPECT_EQ(c.limits.requests_in_flight, 16384u);
  EXPECT_EQ(c.limits.disk_reserve_bytes, 67108864u);
  EXPECT_EQ(c.limits.clock_drift, std::chrono::milliseconds(2000));
  EXPECT_EQ(c.log.level, LogLevel::kInfo);
  EXPECT_EQ(c.log.format, LogFormat::kText);
}

TEST_F(ConfigTest, AFileSetsEveryKind) {
  const auto read = Read({"--config=" + File("g.toml",
                                             "[node]\n"
                                             "data_dir = \"/var/lib/gyre\"\n"
                                             "weight = 3\n"
                                             "[listen]\n"
                                             "client = \"0.0.0.0:7400\"\n"
                                             "advertise_client = \"a.example:7400\"\n"
                                             "peer = \"[2001:db8::1]:7401\"\n"
                                             "[cluster]\n"
                                             "seeds = [\"b:1\", \"c:2\"]\n"
                                             "auto_join = true\n"
                                             "[storage]\n"
                                             "durability = \"memory\"\n"
                                             "[limits]\n"
                                             "value_bytes = \"64 KiB\"\n"
                                             "record_bytes = 200000\n"
                                             "clock_drift_ms = 3000\n"
                                             "connections = 100\n"
                                             "network_bytes = \"64MiB\"\n"
                                             "[security]\n"
                                             "ca = \"ca.pem\"\n"
                                             "certificate = \"node.pem\"\n"
                                             "key = \"key.pem\"\n"
                                             "permissions = [\"shop carts read+write\", \"* * read\"]\n"
                                             "[log]\n"
                                             "level = \"error\"\n"
                                             "format = \"json\"\n")});
  ASSERT_TRUE(read.ok()) << read.status();
  const Config& c = read->config;
  EXPECT_EQ(c.node.data_dir, "/var/lib/gyre");
  EXPECT_EQ(c.node.weight, 3u);
  EXPECT_EQ(c.listen.advertise_client, "a.example:7400");
  EXPECT_EQ(c.listen.advertise_peer, "[2001:db8::1]:7401");
  EXPECT_THAT(c.cluster.seeds, ElementsAre("b:1", "c:2"));
  EXPECT_TRUE(c.cluster.auto_join);
  EXPECT_EQ(c.storage.durability, Durability::kMemory);
  EXPECT_EQ(c.limits.value_bytes, 65536u);
  EXPECT_EQ(c.limits.record_bytes, 200000u);
  EXPECT_EQ(c.limits.connections, 100u);
  EXPECT_EQ(c.limits.network_bytes, size_t{64} << 20);
  EXPECT_TRUE(c.security.on());
  EXPECT_EQ(c.security.ca, "ca.pem");
  EXPECT_EQ(c.security.certificate, "node.pem");
  EXPECT_EQ(c.security.key, "key.pem");
  EXPECT_THAT(c.security.permissions, ElementsAre("shop carts read+write", "* * read"));
  EXPECT_FALSE(c.security.allow_insecure);
  EXPECT_EQ(c.limits.clock_drift, std::chrono::milliseconds(3000));
  EXPECT_EQ(c.log.level, LogLevel::kError);
  EXPECT_EQ(c.log.format, LogFormat::kJson);
}

TEST_F(ConfigTest, FlagsWinOverTheEnvironmentThatOverFilesTheLaterFileOverTheEarlier) {
  const std::string first = File("first.toml", "[node]\nzone = \"first\"\nweight = 10\ndata_dir = \"d\"\n");
  const std::string second = File("second.toml", "[node]\nzone = \"second\"\nweight = 20\n");
  const auto zone_and_weight = [](const absl::StatusOr<Invocation>& read) {
    return read.ok() ? read->config.node.zone + std::to_string(read->config.node.weight)
                     : read.status().ToString();
  };
  EXPECT_EQ(zone_and_weight(Read({"--config", first})), "first10");
  EXPECT_EQ(zone_and_weight(Read({"--config", first, "--config", second})), "second20");
  EXPECT_EQ(zone_and_weight(Read({"--config", second, "--config", first})), "first10");
  EXPECT_EQ(zone_and_weight(Read({"--config", first}, {"GYRE_NODE_ZONE=e", "HOME=/"})), "e10");
  EXPECT_EQ(zone_and_weight(Read({"--node.zone=f", "--config", first}, {"GYRE_NODE_ZONE=e"})), "f10");
  EXPECT_EQ(zone_and_weight(Read({"--node.zone=", "--node.weight", "7"}, {"GYRE_NODE_ZONE=e"})), "7");
  EXPECT_EQ(Read({"--config", first, "--config", second})->config.node.data_dir, "d");
}

TEST_F(ConfigTest, AListIsJoinedByCommasOutsideOfFiles) {
  EXPECT_THAT(Read({"--cluster.seeds=a:1,b:2"})->config.cluster.seeds, ElementsAre("a:1", "b:2"));
  EXPECT_THAT(Read({}, {"GYRE_CLUSTER_SEEDS="})->config.cluster.seeds, IsEmpty());
  EXPECT_THAT(Error({"--cluster.seeds=a:1,"}), HasSubstr("a list of at most 64 addresses HOST:PORT"));
}

TEST_F(ConfigTest, WhatIsWrongInAFileIsNamedWithItsLine) {
  EXPECT_EQ(FileError("[node]\n\nweight = 0\n"),
            "g.toml:3: node.weight must be a number from 1 to 1000, not \"0\"");
  EXPECT_EQ(FileError("[cluster]\nauto_join = \"true\"\n"),
            "g.toml:2: cluster.auto_join is written as true or false without quotes");
  EXPECT_EQ(FileError("[node]\nweight = \"2\"\n"),
            "g.toml:2: node.weight is written as a number without quotes");
  EXPECT_EQ(FileError("[node]\nzone = 2\n"), "g.toml:2: node.zone is written as a quoted text");
  EXPECT_EQ(
      FileError("[cluster]\nseeds = \"a:1\"\n"),
      "g.toml:2: cluster.seeds is written as a list of quoted texts, none of them empty or with a comma");
  for (const char* list : {"[\"\"]", "[\"\", \"a:1\"]", "[\"a:1,b:1\"]", "[1]"}) {
    EXPECT_THAT(FileError(std::string("[cluster]\nseeds = ") + list),
                HasSubstr(":2: cluster.seeds is written as"))
        << list;
  }
  EXPECT_EQ(FileError("[limits]\nsibling = 2\n"),
            "g.toml:2: there is no setting limits.sibling; did you mean limits.siblings?");
  EXPECT_EQ(FileError("[limits]\nfrobnication_level = 2\n"),
            "g.toml:2: there is no setting limits.frobnication_level");
  EXPECT_EQ(FileError("[limit]\n"), "g.toml:1: there is no section [limit]");
  EXPECT_EQ(FileError("zone = \"a\"\n"), "g.toml:1: there is no setting zone; settings stand in a [section]");
  EXPECT_EQ(FileError("[storage]\ndurability = \"Disk\"\n"),
            "g.toml:2: storage.durability must be \"disk\" or \"memory\", not \"Disk\"");
  EXPECT_EQ(FileError("[limits]\nvalue_bytes = \"9MiB\"\n"),
            "g.toml:2: limits.value_bytes must be a size from 1KiB to 8MiB, not \"9MiB\"");
  EXPECT_THAT(FileError("[node]\nweight = = 3\n"), testing::StartsWith("g.toml:2: "));
  EXPECT_EQ(Error({"--config", dir_ + "/absent.toml"}),
            dir_ + "/absent.toml: the configuration cannot be opened: No such file or directory");
}

TEST_F(ConfigTest, WhatIsWrongElsewhereIsNamedWithItsPlace) {
  EXPECT_EQ(Error({"--node.wight=2"}),
            "flag --node.wight: there is no setting node.wight; did you mean node.weight?");
  EXPECT_EQ(Error({"--node.weight=2x"}),
            "flag --node.weight: node.weight must be a number from 1 to 1000, not \"2x\"");
  EXPECT_EQ(Error({"--node.weight"}), "flag --node.weight: it needs a value: --node.weight=VALUE");
  EXPECT_EQ(Error({"serve"}), "argument serve: gyred takes flags only; try `gyred --help`");
  EXPECT_EQ(Error({}, {"GYRE_LIMITS_SIBLINGS=0"}),
            "environment GYRE_LIMITS_SIBLINGS: limits.siblings must be a number from 1 to 1024, not \"0\"");
  EXPECT_EQ(Error({}, {"GYRE_LIMITS_SIBLING=1"}),
            "environment GYRE_LIMITS_SIBLING: there is no such setting; `gyred --help` lists all");
  EXPECT_EQ(Error({}, {"GYRE_LIMIT_SIBLINGS=1"}),
            "environment GYRE_LIMIT_SIBLINGS: there is no such setting; `gyred --help` lists all");
  EXPECT_THAT(Error({}, {"GYRE_" + std::string(100'000, 'A') + "=1"}), HasSubstr("there is no such setting"));
}

TEST_F(ConfigTest, VariablesOfTheCommandLineAndOfKubernetesAreLeftAlone) {
  EXPECT_EQ(Error({}, {"GYRE_ENDPOINTS=a:1", "GYRE_CA=a", "GYRE_CERT=c", "GYRE_KEY=k",
                       "GYRE_SERVICE_HOST=10.0.0.1", "GYRE_SERVICE_PORT_CLIENT=7400",
                       "GYRE_PORT=tcp://10.0.0.1:7400", "GYRE_PEERS_PORT_7401_TCP_ADDR=10.0.0.2"}),
            "none");
}

TEST_F(ConfigTest, SettingsMustFitTogether) {
  EXPECT_EQ(
      Error({"--listen.client=0.0.0.0:7400"}),
      "flag --listen.client: listen.advertise_client must be set to an address that others reach, because "
      "0.0.0.0:7400 is none");
  EXPECT_EQ(Error({"--listen.advertise_peer=[::]:7401"}),
            "flag --listen.advertise_peer: listen.advertise_peer must be set to an address that others "
            "reach, because "
            "[::]:7401 is none");
  EXPECT_EQ(
      Error({"--listen.peer=10.0.0.1:7401"}),
      "flag --listen.peer: listen.peer is 10.0.0.1:7401, which other machines reach, and without TLS all "
      "of them may read and write everything: set security.ca, security.certificate and security.key, or "
      "security.allow_insecure = true");
  EXPECT_EQ(Error({"--listen.peer=10.0.0.1:7401", "--security.allow_insecure=true"}), "none");
  EXPECT_EQ(Error({"--listen.peer=10.0.0.1:7401", "--security.ca=a", "--security.certificate=c",
                   "--security.key=k"}),
            "none");
  EXPECT_EQ(Error({"--listen.client=[::1]:7400", "--listen.peer=localhost:7401"}), "none");
  // Who the node is, is asked before it has a certificate.
  EXPECT_EQ(Error({"--listen.peer=10.0.0.1:7401", "--print-identity"}), "none");
  EXPECT_EQ(Error({"--security.key=k"}),
            "flag --security.key: security.key is set and security.ca is not: TLS needs security.ca, "
            "security.certificate and security.key");
  EXPECT_EQ(Error({"--security.permissions=a b read,a b reed"}),
            "flag --security.permissions: security.permissions: \"a b reed\" is no permission: write CLIENT "
            "KEYSPACE VERBS, the verbs read, write, delete and scan joined by +");
  EXPECT_EQ(FileError("[security]\npermissions = [\"a b read\", \"a b, read\"]\n"),
            "g.toml:2: security.permissions is written as a list of quoted texts, none of them empty or with "
            "a comma");
  EXPECT_EQ(Error({"--listen.peer=127.0.0.1:7400"}),
            "flag --listen.peer: listen.peer must differ from listen.client: both are 127.0.0.1:7400");
  EXPECT_EQ(Error({"--limits.value_bytes=4MiB"}),
            "default: limits.record_bytes must be at least limits.value_bytes and 64KiB more: it is 4194304, "
            "the value "
            "4194304 (flag --limits.value_bytes)");
}

TEST_F(ConfigTest, AddressesAreTakenApartOrRefused) {
  const auto parts = [](const char* address) {
    const auto result = ParseHostPort(address);
    return result.ok() ? result->host + " " + std::to_string(result->port) : "wrong";
  };
  EXPECT_EQ(parts("a.example:1"), "a.example 1");
  EXPECT_EQ(parts("[::1]:65535"), "::1 65535");
  for (const char* wrong : {"", "a", "a:", ":1", "a:0", "a:65536", "a:1x", "a:-1", "::1:5", "[]:1", "a b:1",
                            "[::1:5", "a\x1b:1", "a\r:1", "a\x7f:1"}) {
    EXPECT_EQ(parts(wrong), "wrong") << wrong;
  }
}

TEST_F(ConfigTest, PrintConfigShowsValuesAndOriginsAndCanBeReadBack) {
  const std::string file = File("g.toml", "[node]\nzone = \"a \\\"b\\\"\"\n");
  const auto printed =
      Read({"--config", file, "--print-config", "--cluster.seeds=a:1,b:2"}, {"GYRE_NODE_WEIGHT=4"});
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(printed->action, Invocation::Action::kPrint);
  const std::string& text = printed->text;
  EXPECT_THAT(text, ContainsRegex("^\\[node\\]\ndata_dir = \"gyre-data\" +# default\n"));
  EXPECT_THAT(text, ContainsRegex("\nzone = \"a .\"b.\"\" +# " + file + ":2\n"));
  EXPECT_THAT(text, ContainsRegex("\nweight = 4 +# environment GYRE_NODE_WEIGHT\n"));
  EXPECT_THAT(text, ContainsRegex("\nseeds = \\[\"a:1\", \"b:2\"\\] +# flag --cluster.seeds\n"));
  EXPECT_THAT(text, ContainsRegex("\nadvertise_peer = \"127.0.0.1:7401\" +# as listen.peer\n"));
  for (const Setting& setting : Settings()) {
    EXPECT_THAT(text, HasSubstr(std::string(setting.name.substr(setting.name.find('.') + 1)) + " = "));
  }

  const auto again = Read({"--config", File("printed.toml", text)});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->config.node.zone, "a \"b\"");
  EXPECT_EQ(again->config.node.weight, 4u);
  EXPECT_THAT(again->config.cluster.seeds, ElementsAre("a:1", "b:2"));
  EXPECT_EQ(again->config.limits.value_bytes, 1048576u);
}

TEST_F(ConfigTest, HelpNamesEverySettingAndVersionIsTheBuilds) {
  for (const Setting& setting : Settings()) {
    EXPECT_THAT(Read({"--help"})->text, HasSubstr("\n  " + std::string(setting.name) + "\n"));
  }
  std::ostringstream build;
  build << std::ifstream(GYRE_SOURCE_DIR "/CMakeLists.txt").rdbuf();
  EXPECT_THAT(build.str(), HasSubstr("project(gyre VERSION " + std::string(kGyredVersion) + " "));
  EXPECT_EQ(Read({"--version"})->text, "gyred " + std::string(kGyredVersion) + "\n");
}

TEST_F(ConfigTest, EveryDefaultIsAValueItsSettingTakes) {
  for (const Setting& setting : Settings()) {
    EXPECT_TRUE(ParseSetting(setting, setting.initial).ok()) << setting.name;
  }
}

}  // namespace
}  // namespace gyre
