// A lane and its disk on their threads: every call is answered once, and what was acknowledged is on disk.
#include "server/lane/lane_thread.h"

#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/core/replica_set.h"
#include "server/lane/commit_thread.h"
#include "storage/format/row_key.h"
#include "storage/memory_engine.h"

namespace gyre {
namespace {

constexpr NodeId kSelf{1};
constexpr uint64_t kPushers = 4;
constexpr uint64_t kCallsEach = 500;
constexpr uint64_t kKeys = 50;  // fewer than calls: rows are changed while changes of them are on their way

std::string KeyOf(uint64_t call) { return "key-" + std::to_string(call % kKeys); }

// Keeps what is replied. There are no peers.
class Replies : public Network {
 public:
  void Send(NodeId, LayoutMark, std::vector<Message>) override {}
  void WantLayout(NodeId) override {}
  void Reply(std::vector<Outbox::Reply> replies) override {
    absl::MutexLock lock(&mutex_);
    for (Outbox::Reply& reply : replies) {
      EXPECT_TRUE(by_ticket_.emplace(reply.ticket.value, std::move(reply.result)).second);
    }
  }
  // All of them, when there are so many.
  std::map<uint64_t, CallResult> Await(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return by_ticket_.size() >= count; };
    mutex_.Await(absl::Condition(&there));
    return by_ticket_;
  }

 private:
  absl::Mutex mutex_;
  std::map<uint64_t, CallResult> by_ticket_ ABSL_GUARDED_BY(mutex_);
};

// The only node of its cluster, while it runs.
class Running {
 public:
  explicit Running(Engine& engine) : store_(engine) {
    inbox_.Push(NewLayouts{{*MakeView(FirstLayout({{kSelf, ""}}))}});
  }
  void Push(uint64_t ticket, Call call) {
    inbox_.Push(ClientCall{{ticket}, std::move(call), clock_.Read().steady + Seconds(60)});
  }
  Replies& replies() { return replies_; }
  CommitThread& disk() { return disk_; }
  const LaneStats& stats() const { return stats_; }
  // True when nothing was under way any more.
  bool End() {
    inbox_.Close();
    const bool clean = lane_.Join().has_value();
    disk_.Stop();
    return clean;
  }

 private:
  MachineClock clock_;
  Inbox<Input> inbox_;
  Replies replies_;
  LaneStats stats_;
  Store store_;
  CommitThread disk_{store_, {.path = "/"}, [this](Input input) { inbox_.Push(std::move(input)); }};
  LaneThread lane_{{.self = kSelf},
                   ActorClock(kSelf.value, std::nullopt, clock_.Read().wall_ms),
                   {clock_, replies_, disk_, stats_},
                   inbox_};
};

Call PutOf(uint64_t call) {
  return PutCall{.key = KeyOf(call),
                 .value = std::to_string(call),
                 .w = ReplicaCount{ReplicaCount::How::kOne},
                 .context = std::nullopt};
}

// Many threads push at once, as sessions do, while others look at what the lane says of itself.
TEST(LaneThread, AnswersEveryCallOnceAndKeepsWhatItAcknowledged) {
  MemoryEngine engine;
  Running node(engine);
  std::vector<std::thread> threads;
  for (uint64_t pusher = 0; pusher < kPushers; ++pusher) {
    threads.emplace_back([&node, pusher] {
      for (uint64_t i = 0; i < kCallsEach; ++i) {
        const uint64_t call = pusher * kCallsEach + i;
        node.Push(call, PutOf(call));
        if (i % 100 == 0) {
          EXPECT_TRUE(node.disk().Run([](Store& store) { store.RecountSome(100); }).ok());
        }
        EXPECT_LE(node.stats().calls_in_flight.load(), kPushers * kCallsEach);
        EXPECT_TRUE(node.stats().hints().empty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& [ticket, result] : node.replies().Await(kPushers * kCallsEach)) {
    EXPECT_TRUE(result.status.ok()) << ticket << ": " << result.status;
  }
  EXPECT_TRUE(node.End());
  // After a crash that loses what was not synced.
  engine.Crash(MemoryEngine::CrashKind::kPower);
  Store store(engine);
  uint64_t rows = 0;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const std::string row_key = MakeRowKey(1, TokenOf(KeyOf(key)).value, KeyOf(key));
    const absl::StatusOr<RecordBytes> row = store.ReadRows({&row_key, 1}).front();
    ASSERT_TRUE(row.ok());
    ASSERT_NE(*row, nullptr) << KeyOf(key);
    // Each put superseded what its coordinator held.
    EXPECT_EQ(DecodeRecord(**row)->versions.size(), 1u);
    ++rows;
  }
  const absl::StatusOr<Store::Verification> verified = store.Verify();
  ASSERT_TRUE(verified.ok());
  EXPECT_EQ(verified->rows, rows);
  EXPECT_EQ(verified->differences, 0u);
}

// Calls that are pushed while the node ends are answered too, well or with "shutting down".
TEST(LaneThread, EndsWithEveryCallAnswered) {
  MemoryEngine engine;
  Running node(engine);
  std::thread pusher([&node] {
    for (uint64_t call = 0; call < kCallsEach; ++call) node.Push(call, PutOf(call));
  });
  pusher.join();
  EXPECT_TRUE(node.End());
  EXPECT_EQ(node.replies().Await(kCallsEach).size(), kCallsEach);
  EXPECT_FALSE(node.disk().Start([](Store&) { FAIL() << "the disk has stopped"; }));
}

}  // namespace
}  // namespace gyre
