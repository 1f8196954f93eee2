// A process that is killed at any moment loses nothing that it acknowledged, and its sums come back exact.
//
// One test only: it forks, and a process that has opened an engine has threads.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/storage/rocks_world.h"

namespace gyre {
namespace {

// Small buffers: tables are written and logs change while it runs.
const RocksOptions kSmall{.cache_bytes = 1 << 20, .write_buffer_bytes = 256 << 10, .log_bytes_max = 64 << 20};
constexpr int kKills = 4;

struct Acknowledgement {
  uint64_t number;
  uint64_t sequence;
};

std::string KeyOf(uint64_t number) { return MakeRowKey(0, number * 0x9e3779b97f4a7c15, "key"); }
std::string ValueOf(uint64_t number) { return std::to_string(number) + std::string(1000, 'v'); }

// Commits synced rows and tells `pipe` of each, until it is killed (or has made far more than anyone waits
// for).
void CommitUntilKilled(const std::string& path, int pipe) {
  auto engine = RocksEngine::Open(path, kSmall);
  if (!engine.ok()) return;
  Store store(**engine);
  for (uint64_t number = 1; number < 100'000; ++number) {
    const RowWrite row{KeyOf(number), nullptr, Bytes(ValueOf(number))};
    if (!store.Commit({&row, 1}, {}, Durability::kDisk).ok()) return;
    if (number % 100 == 0 && !store.SaveSums().ok()) return;
    const Acknowledgement acknowledgement{number, (*engine)->LastSequence()};
    if (::write(pipe, &acknowledgement, sizeof acknowledgement) != sizeof acknowledgement) return;
  }
}

// Returns what the child acknowledged before it was killed.
std::vector<Acknowledgement> RunAndKill(const std::string& path, size_t after) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    CommitUntilKilled(path, ends[1]);
    ::_exit(1);
  }
  EXPECT_GT(child, 0);
  ::close(ends[1]);
  std::vector<Acknowledgement> acknowledged;
  Acknowledgement next{};
  while (::read(ends[0], &next, sizeof next) == sizeof next) {
    acknowledged.push_back(next);
    if (acknowledged.size() == after) ::kill(child, SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
  ::close(ends[0]);
  return acknowledged;
}

TEST(RocksCrash, WhatWasAcknowledgedIsThereAndSumsAreExact) {
  TemporaryDirectory directories[kKills];
  std::vector<Acknowledgement> acknowledged[kKills];
  for (int i = 0; i < kKills; ++i) acknowledged[i] = RunAndKill(directories[i].path(), 1 + 333 * i);

  for (int i = 0; i < kKills; ++i) {
    auto engine = RocksEngine::Open(directories[i].path(), kSmall);
    ASSERT_TRUE(engine.ok()) << engine.status();
    const uint64_t last = acknowledged[i].back().number;
    for (uint64_t number = 1; number <= last; ++number) {
      ASSERT_EQ((*engine)->Get(Table::kRows, KeyOf(number)).value_or("lost"), ValueOf(number)) << number;
    }
    const uint64_t rows = Contents(**engine, Table::kRows).size();
    ASSERT_LE(rows, last + 1);
    for (size_t from = 0; from < acknowledged[i].size(); from += 50) {
      uint64_t notes = 0;
      ASSERT_TRUE((*engine)->ReplayNotes(acknowledged[i][from].sequence, [&](auto) { ++notes; }).ok());
      EXPECT_EQ(notes, rows - acknowledged[i][from].number);
    }
    Store store(**engine);
    EXPECT_EQ(ExpectExactOrInDoubt(store, 1), 0u);
  }
}

}  // namespace
}  // namespace gyre
