// Section F: quorums, what an answer may claim, and scans.
#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "tests/cases/scripted_cluster.h"

namespace gyre::cases {
namespace {

using Code = absl::StatusCode;
using Values = std::vector<std::string>;

constexpr ReplicaCount kTwo = {ReplicaCount::How::kCount, 2};

std::string KeyOf(int i) { return "key" + std::to_string(i); }

// Those nodes take what is sent to them, and never answer: nobody holds them for down.
void Silence(ScriptedCluster& cluster, std::set<size_t> silent) {
  cluster.SetFilter(
      [silent = std::move(silent)](size_t from, size_t, const Message&) { return !silent.contains(from); });
}

TEST(CasesF, Case65_StrictQuorumsCountWhatPrimariesConfirmed) {
  ScriptedCluster cluster({.nodes = 5});
  const std::vector<size_t> replicas = cluster.ReplicasOf("k");
  Silence(cluster, {replicas[2]});
  const CallResult two =
      cluster.Ask(replicas[0], PutCall{.key = "k", .value = "two", .w = kTwo, .strict = true});
  ASSERT_TRUE(two.status.ok()) << two.status;
  EXPECT_EQ(std::get<WriteResult>(two.result).acks, 2);
  EXPECT_EQ(std::get<WriteResult>(two.result).fallbacks, 0);
  const auto read = [&](size_t node) {
    return cluster.Ask(node, GetCall{.key = "k", .r = kTwo, .strict = true});
  };
  for (const size_t node : {replicas[0], replicas[1]}) {
    const CallResult got = read(node);
    ASSERT_TRUE(got.status.ok()) << got.status;
    EXPECT_EQ(std::get<GetResult>(got.result).values.at(0).value, "two");
  }
  // One primary alone is no quorum, however many others could stand in.
  Silence(cluster, {replicas[1], replicas[2]});
  const CallResult one =
      cluster.Ask(replicas[0], PutCall{.key = "k", .value = "one", .w = kTwo, .strict = true});
  EXPECT_TRUE(one.status.code() == Code::kUnknown || one.status.code() == Code::kDeadlineExceeded)
      << one.status;
  EXPECT_FALSE(read(replicas[0]).status.ok());
}

TEST(CasesF, Case67_AnEmptyFallbackIsNoProofThatAKeyIsNotThere) {
  ScriptedCluster cluster({.nodes = 5});
  constexpr int kKeys = 1000;
  for (int i = 0; i < kKeys; ++i) cluster.Put(0, {.key = KeyOf(i), .value = "v", .w = kAll});
  for (const size_t down : {1, 3}) {
    cluster.Kill(down);
    for (int read = 0; read < 5000; ++read) {
      size_t node = static_cast<size_t>(read) % 5;  // also before anybody noticed
      if (node == down) node = 0;
      ASSERT_EQ(cluster.Values(node, KeyOf(read % kKeys), kOne), Values{"v"}) << KeyOf(read % kKeys);
    }
    cluster.Start(down);
    cluster.Run(Seconds(1));
  }
}

// What each call may end with when so many of three replicas are gone, or take everything and say nothing.
TEST(CasesF, Case70_EveryCallIsAnsweredWhoeverIsDown) {
  for (const bool silent : {false, true}) {
    for (const std::set<size_t>& gone : {std::set<size_t>{}, {1}, {2}, {1, 2}}) {
      SCOPED_TRACE(testing::PrintToString(gone) + (silent ? " silent" : " down"));
      ScriptedCluster cluster;
      cluster.Put(0, {.key = "there", .value = "v", .w = kAll});
      for (const size_t node : gone) {
        if (!silent) cluster.Kill(node);
      }
      if (silent) Silence(cluster, gone);
      for (const Micros noticed : {Micros{}, Millis(200)}) {
        cluster.Run(noticed);
        const Call calls[] = {PutCall{.key = "k", .value = "v"}, GetCall{.key = "there"},
                              DeleteCall{.key = "k"}, ScanCall{}};
        for (const Call& call : calls) {
          const Code code = cluster.Ask(0, call, Seconds(1)).status.code();
          if (gone.size() < 2) {
            EXPECT_EQ(code, Code::kOk) << call.index();
          } else {
            EXPECT_TRUE(code == Code::kUnavailable || code == Code::kUnknown ||
                        code == Code::kDeadlineExceeded)
                << call.index() << ": " << static_cast<int>(code);
          }
        }
      }
    }
  }
}

// Calls that are sent together are answered each for itself; where none is, nothing was promised.
TEST(CasesF, Case71_OfManyPutsEachIsThereOrWasNotAcknowledged) {
  std::mt19937_64 random(71);
  ScriptedCluster cluster;
  int acked_at_all = 0;
  int begun_at_all = 0;
  for (int round = 0; round < 200; ++round) {
    constexpr int kBatch = 40;
    auto acked = std::make_shared<std::set<int>>();
    for (int i = 0; i < kBatch; ++i) {
      const int number = round * kBatch + i;
      cluster.AskLater(0, PutCall{.key = KeyOf(number), .value = "v"},
                       [acked, number](const CallResult& result) {
                         if (result.status.ok()) acked->insert(number);
                       });
    }
    cluster.Run(Micros{static_cast<int64_t>(random() % 3000)});
    cluster.Kill(0);
    cluster.Run(Millis(100));
    for (const int number : *acked) ASSERT_EQ(cluster.Values(1, KeyOf(number), kTwo), Values{"v"}) << number;
    acked_at_all += static_cast<int>(acked->size());
    begun_at_all += kBatch;
    cluster.Start(0);
    cluster.Run(Millis(100));
  }
  EXPECT_GT(acked_at_all, 0);
  EXPECT_LT(acked_at_all, begun_at_all) << "no batch was interrupted";
}

TEST(CasesF, Case73_AScanOfFewKeysAmongManyDeletedOnesEnds) {
  ScriptedCluster cluster;
  constexpr int kDeleted = 20'000;
  int under_way = 0;
  for (int i = 0; i < kDeleted; ++i) {
    ASSERT_TRUE(cluster.RunUntil([&] { return under_way < 200; }));
    ++under_way;
    cluster.AskLater(0, DeleteCall{.key = KeyOf(i), .context = std::nullopt}, [&](const CallResult& result) {
      --under_way;
      EXPECT_TRUE(result.status.ok()) << result.status;
    });
  }
  ASSERT_TRUE(cluster.RunUntil([&] { return under_way == 0; }));
  std::set<std::string> kept;
  for (int i = 0; i < 10; ++i) {
    kept.insert("kept" + std::to_string(i));
    cluster.Put(1, {.key = "kept" + std::to_string(i), .value = "v"});
  }
  for (size_t node = 0; node < 3; ++node) {
    std::set<std::string> found;
    for (const auto& [key, values] : cluster.ScanAll(node)) found.insert(key);
    EXPECT_EQ(found, kept);
  }
}

// Whoever is asked while the replicas change, by whatever layout it still goes.
TEST(CasesF, Case73_AScanIsCompleteWhileDataMoves) {
  ScriptedCluster cluster({.nodes = 5, .members = 3});
  constexpr int kKeys = 1500;
  for (int i = 0; i < kKeys; ++i) cluster.Put(0, {.key = KeyOf(i), .value = "v"});
  for (const std::vector<size_t>& members : {std::vector<size_t>{0, 1, 2, 3, 4}, {2, 3, 4}, {0, 1, 2}}) {
    cluster.BeginMove(cluster.WithMembers(members));
    for (size_t scan = 0; cluster.moving() || scan < 5; ++scan) {
      ASSERT_EQ(cluster.ScanAll(scan % 5).size(), size_t{kKeys}) << "by way of node " << scan % 5;
      cluster.Run(Millis(3));
      ASSERT_LT(scan, 5000u) << "the movement does not end";
    }
    ASSERT_TRUE(cluster.RunUntilMoved());
  }
}

TEST(CasesF, Case75_WhatIsJustWithinTheLimitsPassesEverywhere) {
  constexpr size_t kKeyBytes = 4096;
  constexpr size_t kValueBytes = 100'000;
  ScriptedCluster cluster({.limits = {.value_bytes = kValueBytes}});
  const auto put = [&](size_t key_bytes, size_t value_bytes) {
    return cluster.Ask(0,
                       PutCall{.key = std::string(key_bytes, 'k'), .value = std::string(value_bytes, 'v')});
  };
  for (const size_t node : {1, 2}) {
    cluster.Kill(node);  // what it misses comes as hints, and as repairs where those are refused
    if (node == 2) {
      cluster.SetFilter(
          [](size_t, size_t, const Message& message) { return KindOf(message.op) != OpKind::kHandoff; });
    }
    cluster.Run(Millis(100));
    for (const size_t key_bytes : {kKeyBytes - 1, kKeyBytes}) {
      for (const size_t value_bytes : {size_t{0}, kValueBytes - 1, kValueBytes}) {
        EXPECT_TRUE(put(key_bytes, value_bytes).status.ok()) << key_bytes << " " << value_bytes;
      }
    }
    for (const CallResult& refused : {put(kKeyBytes + 1, 1), put(1, kValueBytes + 1)}) {
      EXPECT_EQ(refused.status.code(), Code::kInvalidArgument) << refused.status;
    }
    cluster.Start(node);
    ASSERT_TRUE(cluster.RunUntil([&] {
      return cluster.RowsOnDisk(node) == 2 &&
             cluster.node(node).Durable(cluster.RowKeyOf(std::string(kKeyBytes, 'k'))) != nullptr;
    }));
  }
  cluster.SetFilter(nullptr);
  cluster.Quiesce();
  for (size_t node = 0; node < 3; ++node) {
    const auto rows = cluster.ScanAll(node);
    ASSERT_EQ(rows.size(), 2u);
    for (const size_t key_bytes : {kKeyBytes - 1, kKeyBytes}) {
      EXPECT_EQ(rows.at(std::string(key_bytes, 'k')), Values{std::string(kValueBytes, 'v')});
    }
  }
}

TEST(CasesF, Case76_WhatWasWrittenUnderHigherLimitsMovesUnderLowerOnes) {
  ScriptedCluster cluster({.nodes = 4});
  constexpr int kKeys = 60;
  const std::string value(50'000, 'v');
  for (int i = 0; i < kKeys; ++i) cluster.Put(0, {.key = KeyOf(i), .value = value});
  cluster.Quiesce();
  for (size_t node = 0; node < 4; ++node) {
    cluster.Kill(node);
    cluster.node(node).SetLimits({.value_bytes = 100, .siblings = 1, .record_bytes = 1000});
    cluster.Start(node);
    cluster.Run(Seconds(1));
  }
  EXPECT_FALSE(cluster.Ask(0, PutCall{.key = "new", .value = value}).status.ok());
  cluster.BeginMove(cluster.WithMembers({0, 1, 2}));
  ASSERT_TRUE(cluster.RunUntilMoved());
  cluster.Kill(3);
  for (int i = 0; i < kKeys; ++i) EXPECT_EQ(cluster.Values(1, KeyOf(i)), Values{value}) << i;
}

// A node that holds no replica hands writes on; whom it asked dies, and each call is answered all the same.
TEST(CasesF, Case77_EachCallIsAnsweredWhenTheNodeItWasHandedToDies) {
  ScriptedCluster cluster({.nodes = 5});
  int refused = 0;
  int done = 0;
  for (int round = 0; round < 40; ++round) {
    const size_t asked = static_cast<size_t>(round) % 5;
    std::optional<size_t> target;
    cluster.SetFilter([&](size_t from, size_t to, const Message& message) {
      if (from == asked && to != asked && std::holds_alternative<peer::Forward>(message.body)) target = to;
      return true;
    });
    int waiting = 0;
    for (int i = 0; i < 30; ++i) {
      ++waiting;
      cluster.AskLater(
          asked, PutCall{.key = KeyOf(round * 30 + i), .value = "v"},
          [&](const CallResult& result) {
            --waiting;
            ++(result.status.ok() ? done : refused);
            const Code code = result.status.code();
            EXPECT_TRUE(code == Code::kOk || code == Code::kUnavailable || code == Code::kUnknown ||
                        code == Code::kDeadlineExceeded)
                << result.status;
          },
          Seconds(1));
    }
    ASSERT_TRUE(cluster.RunUntil([&] { return target.has_value(); }, Seconds(1)));
    cluster.Run(Micros{static_cast<int64_t>(round) * 20});
    cluster.Kill(*target);
    EXPECT_TRUE(cluster.RunUntil([&] { return waiting == 0; }, Millis(1100))) << waiting << " wait";
    cluster.SetFilter(nullptr);
    cluster.Start(*target);
    cluster.Run(Millis(200));
  }
  EXPECT_GT(done, 0);
  EXPECT_GT(refused, 0) << "no call was under way when its node died";
}

}  // namespace
}  // namespace gyre::cases
