// cluster plan, apply and moves against a node in this process: what is asked, what is printed, exit codes.
#include <cstdio>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/plan_file.h"
#include "client/cli/session.h"
#include "tests/client/fake_admin.h"

namespace gyre::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kOld[] = "000000000000000a";
constexpr char kNew[] = "000000000000000b";

class PlanTest : public testing::Test {
 protected:
  PlanTest() {
    v1::Node& member = *node.status.mutable_topology()->add_nodes();
    member.set_id(kOld);
    member.set_address(node.address());
    member.set_member(true);
    node.status.mutable_topology()->set_layout_epoch(7);
    node.status.mutable_topology()->set_active_layouts(1);
    node.plan.set_base_epoch(7);
    node.plan.set_base_digest(99);
    node.plan.set_hash(77);
    node.plan.mutable_changes()->add_add(kNew);
    v1::PlannedMove& move = *node.plan.add_moves();
    move.set_from(kOld);
    move.set_to(kNew);
    move.set_ranges(3);
    move.set_keys(1000);
    move.set_bytes(50000);
    node.plan.mutable_before()->set_owned(1.25);
    node.plan.mutable_after()->set_owned(1.0625);
    node.apply.set_layout_epoch(8);
  }

  int Gyre(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"gyre", "--endpoints", node.address()});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = cli::Run(static_cast<int>(argv.size()), argv.data());
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return code;
  }
  void Write(const std::string& text) const { std::ofstream(file) << text; }
  v1::MovesReply Moving(uint64_t epoch, uint32_t active) const {
    v1::MovesReply reply;
    reply.set_node(kNew);
    reply.set_layout_epoch(epoch);
    reply.set_active_layouts(active);
    reply.set_finished(active == 1);
    return reply;
  }

  FakeAdmin node;
  const std::string file = testing::TempDir() + "plan.json";
  std::string out;
  std::string err;
};

TEST_F(PlanTest, ANodeMayBeNamedByItsAddress) {
  EXPECT_EQ(Gyre({"cluster", "plan", "--remove", node.address(), "--weight", node.address() + "=2"}), kDone)
      << err;
  EXPECT_EQ(node.planned.changes().remove(0), kOld);
  EXPECT_EQ(node.planned.changes().weight(0).node(), kOld);
  EXPECT_EQ(Gyre({"cluster", "plan", "--remove", "127.0.0.1:1"}), kUsage);
  EXPECT_THAT(err, HasSubstr("there is no node at 127.0.0.1:1"));
}

TEST_F(PlanTest, AsksForAllChanges) {
  ASSERT_EQ(Gyre({"cluster", "plan",      "--add",    "b",        "--add",        "c",        "--remove",
                  "d",       "--replace", "e=f",      "--weight", "b=1000",       "--zone",   "b=z=1",
                  "--zone",  "c=",        "--tokens", "b=32",     "--keyspace-n", "default=5"}),
            kDone)
      << err;
  const v1::MemberChanges& changes = node.planned.changes();
  EXPECT_EQ(changes.add_size(), 2);
  EXPECT_EQ(changes.add(1), "c");
  EXPECT_EQ(changes.remove(0), "d");
  EXPECT_EQ(changes.replace(0).old(), "e");
  EXPECT_EQ(changes.replace(0).by(), "f");
  EXPECT_EQ(changes.weight(0).number(), 1000u);
  EXPECT_EQ(changes.zone(0).zone(), "z=1");
  EXPECT_EQ(changes.zone(1).zone(), "");
  EXPECT_EQ(changes.tokens(0).number(), 32u);
  EXPECT_EQ(changes.n(0).keyspace(), "default");
  EXPECT_EQ(changes.n(0).n(), 5u);
}

TEST_F(PlanTest, RefusesFlagsThatMakeNoSense) {
  const std::vector<std::vector<std::string>> commands = {
      {},
      {"--weight", "a=0"},
      {"--weight", "a=-1"},
      {"--weight", "a=nan"},
      {"--weight", "a=1.5"},
      {"--weight", "a=1001"},
      {"--weight", "a=99999999999999999999"},
      {"--weight", "a= 1"},
      {"--weight", "a="},
      {"--weight", "=1"},
      {"--weight", "a"},
      {"--tokens", "a=0"},
      {"--tokens", "a=4097"},
      {"--keyspace-n", "default=0"},
      {"--keyspace-n", "default=9"},
      {"--replace", "a"},
      {"--replace", "a="},
      {"--zone", "z"},
      {"--add", ""},
      {"--add"},
      {"--out", file},
      {"word"},
  };
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin(), {"cluster", "plan"});
    EXPECT_EQ(Gyre(command), kUsage) << testing::PrintToString(command);
    EXPECT_NE(err, "");
  }
  EXPECT_FALSE(node.planned.has_changes()) << "nothing was asked";
}

TEST_F(PlanTest, PrintsAndWritesThePlan) {
  ASSERT_EQ(Gyre({"-o", "json", "cluster", "plan", "--add", "b", "--out", file}), kDone) << err;
  const Json json = Json::parse(out);
  EXPECT_EQ(json["base"]["version"], 7);
  EXPECT_EQ(json["changes"]["add"][0], kNew);
  EXPECT_EQ(json["moves"].size(), 1u);
  EXPECT_EQ(json["balance"]["before"]["owned"], 1.25);
  EXPECT_EQ(json["warnings"], Json::array());
  std::ifstream written(file);
  EXPECT_EQ(Json::parse(written), json);

  node.plan.add_warnings("node x is down");
  node.plan.add_loss("much is lost");
  ASSERT_EQ(Gyre({"cluster", "plan", "--add", "b"}), kDone) << err;
  for (const char* part :
       {"plan 000000000000004d for layout 7", "  add  000000000000000b\n",
        "000000000000000a  000000000000000b  3       1000  50000\n", "all ", "before         1.250  0.000",
        "warnings\n  node x is down\n", "--force is given)\n  much", "nothing is changed"}) {
    EXPECT_THAT(out, HasSubstr(part));
  }
  node.plan.clear_moves();
  ASSERT_EQ(Gyre({"cluster", "plan", "--zone", "b=x"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("no data moves\n"));
  EXPECT_EQ(Gyre({"cluster", "plan", "--add", "b", "--out", "/nowhere/plan"}), kOtherFailure);
}

TEST_F(PlanTest, AppliesWhatWasPlanned) {
  ASSERT_EQ(Gyre({"cluster", "plan", "--add", "b", "--out", file}), kDone) << err;
  ASSERT_EQ(Gyre({"-o", "json", "cluster", "apply", file}), kDone) << err;
  EXPECT_EQ(out, "{\"layout\":8}\n");
  EXPECT_EQ(node.applied.base_epoch(), 7u);
  EXPECT_EQ(node.applied.base_digest(), 99u);
  EXPECT_EQ(node.applied.hash(), 77u);
  EXPECT_EQ(node.applied.changes().add(0), kNew);
  EXPECT_FALSE(node.applied.force());
  ASSERT_EQ(Gyre({"cluster", "apply", file, "--force"}), kDone) << err;
  EXPECT_TRUE(node.applied.force());

  const std::pair<grpc::StatusCode, ExitCode> codes[] = {
      {grpc::StatusCode::FAILED_PRECONDITION, kOtherFailure},
      {grpc::StatusCode::INVALID_ARGUMENT, kUsage},
      {grpc::StatusCode::UNAVAILABLE, kUnavailable},
      {grpc::StatusCode::UNKNOWN, kOutcomeUnknown},
  };
  for (const auto& [code, exit] : codes) {
    node.outcome = grpc::Status(code, "why");
    EXPECT_EQ(Gyre({"cluster", "apply", file, "--wait"}), exit);
    EXPECT_THAT(err, HasSubstr("why"));
  }
  EXPECT_EQ(node.looks, 0);
}

TEST_F(PlanTest, AppliesNothingElse) {
  ASSERT_EQ(Gyre({"cluster", "plan", "--add", "b", "--out", file}), kDone) << err;
  std::ifstream in(file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  for (const std::string& wrong :
       {std::string(), text.substr(0, text.size() / 2), std::string("{}"), std::string("put cart milk\n"),
        std::string(text).replace(text.find("1000"), 1, "2")}) {
    Write(wrong);
    EXPECT_EQ(Gyre({"cluster", "apply", file}), kUsage);
    EXPECT_THAT(err, HasSubstr(file + ": it "));
  }
  EXPECT_EQ(Gyre({"cluster", "apply", file + ".none"}), kUsage);
  EXPECT_EQ(Gyre({"cluster", "apply"}), kUsage);
  EXPECT_EQ(node.applied.base_epoch(), 0u) << "nothing was asked";
}

TEST_F(PlanTest, WaitsUntilTheOldLayoutRetired) {
  ASSERT_EQ(Gyre({"cluster", "plan", "--add", "b", "--out", file}), kDone) << err;
  node.moves = {Moving(7, 1), Moving(8, 2), Moving(9, 1)};
  ASSERT_EQ(Gyre({"-o", "json", "cluster", "apply", "--wait", file}), kDone) << err;
  EXPECT_EQ(out, "{\"layout\":8}\n");
  EXPECT_EQ(err, "") << "progress is for terminals";
  EXPECT_EQ(node.looks, 3);

  node.moves = {Moving(8, 2), Moving(9, 2)};
  node.moves.back().set_going_back(true);
  node.looks = 0;
  EXPECT_EQ(Gyre({"cluster", "apply", "--wait", file}), kOtherFailure);
  EXPECT_THAT(err, HasSubstr("gone back from"));
}

TEST_F(PlanTest, ShowsMoves) {
  node.moves = {Moving(8, 2)};
  ASSERT_EQ(Gyre({"-o", "json", "cluster", "moves"}), kDone) << err;
  EXPECT_EQ(out, "[]\n");
  node.status.mutable_topology()->set_active_layouts(2);
  node.status.mutable_topology()->mutable_nodes(0)->set_step("ack");
  node.moves[0].set_bytes_per_second(1000);
  for (const bool known : {true, false}) {
    v1::Move& move = *node.moves[0].add_moves();
    move.set_from(kOld);
    move.set_keyspace("default");
    move.set_begin(1);
    move.set_end(0xff);
    move.set_keys_done(10);
    move.set_keys_total(40);
    move.set_bytes_done(1000);
    if (known) move.set_eta_seconds(2.5);
    move.set_state(known ? v1::Move::RUNNING : v1::Move::WAITING);
  }
  ASSERT_EQ(Gyre({"-o", "json", "cluster", "moves"}), kDone) << err;
  const Json moves = Json::parse(out);
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves[0].dump(),
            "{\"from\":\"000000000000000a\",\"to\":\"000000000000000b\",\"keyspace\":\"default\","
            "\"range\":\"0000000000000001:00000000000000ff\",\"keys_done\":10,\"keys_total\":40,"
            "\"bytes_done\":1000,\"eta_seconds\":2.5,\"state\":\"running\"}");
  EXPECT_EQ(moves[1]["eta_seconds"], Json(nullptr));
  EXPECT_EQ(moves[1]["state"], "waiting");
  ASSERT_EQ(Gyre({"cluster", "moves"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("its data moves\n"));
  EXPECT_THAT(out, HasSubstr("0/2     20/80  2000   -    running\n"));
  ASSERT_EQ(Gyre({"cluster", "status"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("its data moves  not converged"));
  EXPECT_THAT(out, HasSubstr("up, step ack"));
  ASSERT_EQ(Gyre({"cluster", "status", "-o", "json"}), kDone) << err;
  EXPECT_EQ(Json::parse(out)["active_layouts"], 2);
  EXPECT_EQ(Json::parse(out)["nodes"][0]["step"], "ack");
}

TEST_F(PlanTest, ControlsMoves) {
  node.moves = {Moving(8, 2)};
  ASSERT_EQ(Gyre({"cluster", "moves", "pause"}), kDone) << err;
  ASSERT_EQ(Gyre({"cluster", "moves", "resume", "-o", "json"}), kDone) << err;
  EXPECT_EQ(out, "[]\n");
  ASSERT_EQ(Gyre({"cluster", "moves", "rate", "1000000"}), kDone) << err;
  ASSERT_EQ(node.controls.size(), 3u);
  EXPECT_TRUE(node.controls[0].paused());
  EXPECT_TRUE(node.controls[1].has_paused());
  EXPECT_FALSE(node.controls[1].paused());
  EXPECT_FALSE(node.controls[2].has_paused());
  EXPECT_EQ(node.controls[2].bytes_per_second(), 1000000u);
  for (const char* wrong : {"0", "-5", "1M", "nan", "", "1e6", "99999999999999999999"}) {
    EXPECT_EQ(Gyre({"cluster", "moves", "rate", wrong}), kUsage) << wrong;
  }
  EXPECT_EQ(Gyre({"cluster", "moves", "rate"}), kUsage);
  EXPECT_EQ(Gyre({"cluster", "moves", "faster"}), kUsage);
  EXPECT_EQ(node.controls.size(), 3u);
  ASSERT_EQ(Gyre({"-o", "json", "cluster", "moves", "abort"}), kDone) << err;
  EXPECT_EQ(out, "{\"layout\":8}\n");
  EXPECT_EQ(node.aborts, 1);

  v1::Node& away = *node.status.mutable_topology()->add_nodes();
  away.set_id(kNew);
  away.set_member(true);
  away.set_state(v1::Node::DOWN);
  EXPECT_EQ(Gyre({"cluster", "moves", "pause"}), kOtherFailure);
  EXPECT_THAT(err, HasSubstr(kNew));
  EXPECT_EQ(node.controls.size(), 4u) << "the others are told";
  ASSERT_EQ(Gyre({"cluster", "moves"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("cannot be asked"));
}

TEST_F(PlanTest, KeyspaceSetSaysHowNIsChanged) {
  EXPECT_EQ(Gyre({"keyspace", "set", "default", "--n", "5"}), kUsage);
  EXPECT_THAT(err, HasSubstr("gyre cluster plan --keyspace-n NAME=N"));
}

}  // namespace
}  // namespace gyre::cli
