// Engines as tests meet them: opened, left cleanly, and opened again.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "storage/format/row_key.h"
#include "storage/memory_engine.h"
#include "storage/merkle.h"
#include "storage/store.h"

namespace gyre {

inline RecordBytes Bytes(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

// One node's disk, whatever the engine.
class World {
 public:
  virtual ~World() = default;
  virtual Engine& engine() = 0;
  virtual void Reopen() = 0;  // as after a clean end of the process; nothing that was applied is lost
};

class MemoryWorld final : public World {
 public:
  Engine& engine() override { return engine_; }
  void Reopen() override { engine_.Crash(MemoryEngine::CrashKind::kProcess); }

 private:
  MemoryEngine engine_;
};

// All entries of a table.
inline std::map<std::string, std::string> Contents(Engine& engine, Table table, const KeyRange& range = {}) {
  std::map<std::string, std::string> contents;
  std::string last;
  EXPECT_TRUE(engine
                  .Scan(table, range,
                        [&](std::string_view key, std::string_view value) {
                          EXPECT_TRUE(contents.empty() || last < key) << "keys out of order";
                          last = key;
                          contents.emplace(key, value);
                          return true;
                        })
                  .ok());
  return contents;
}

// The sums of the leaves that have rows, counted the slow way.
inline std::map<std::pair<uint32_t, uint32_t>, RowHash> NaiveLeafSums(Engine& engine) {
  std::map<std::pair<uint32_t, uint32_t>, RowHash> sums;
  for (const auto& [key, value] : Contents(engine, Table::kRows)) {
    RowKeyParts parts;
    EXPECT_TRUE(ParseRowKey(key, parts));
    sums[{parts.keyspace, MerkleTree::LeafOf(parts.token)}] += HashRow(key, value);
  }
  return sums;
}

// Expects that every leaf is either in doubt or exact, and returns how many are in doubt. Keyspaces are [0,
// keyspaces).
inline size_t ExpectExactOrInDoubt(Store& store, uint32_t keyspaces) {
  auto naive = NaiveLeafSums(store.engine());
  size_t in_doubt = 0;
  for (uint32_t keyspace = 0; keyspace < keyspaces; ++keyspace) {
    const MerkleTree* tree = store.Tree(keyspace);
    for (uint32_t leaf = 0; leaf < kMerkleLeaves; ++leaf) {
      const auto sum = tree ? tree->SumOfNode(MerkleTree::kLevels - 1, leaf) : RowHash{};
      if (!sum) {
        ++in_doubt;
      } else if (*sum != RowHash{} || naive.contains({keyspace, leaf})) {
        EXPECT_EQ(ToString(*sum), ToString(naive[{keyspace, leaf}]))
            << "keyspace " << keyspace << " leaf " << leaf;
      }
    }
  }
  return in_doubt;
}

// Makes commits of random rows: a few leaves that are hit often and many that are hit once, and keys that
// repeat.
class RowMaker {
 public:
  RowMaker(uint64_t seed, uint32_t keyspaces) : random_(seed), keyspaces_(keyspaces) {}

  uint64_t Next(uint64_t below) { return random_() % below; }

  std::string RowKey() {
    const uint64_t leaf = Next(2) ? Next(8) : Next(kMerkleLeaves);
    const uint64_t token = leaf << 48 | Next(4) << 40;
    return MakeRowKey(static_cast<uint32_t>(Next(keyspaces_)), token, "key" + std::to_string(Next(3)));
  }

  // Up to `rows_max` changes, in one of eight rows more than once. `before` is what the store holds.
  std::vector<RowWrite> Writes(Store& store, size_t rows_max) {
    std::vector<RowWrite> writes;
    std::map<std::string, RecordBytes> changed;
    const size_t count = 1 + Next(rows_max);
    while (writes.size() < count) {
      const std::string key = writes.empty() || Next(8) ? RowKey() : writes[Next(writes.size())].row_key;
      if (!changed.contains(key)) {
        const auto row = store.ReadRows({&key, 1})[0];
        EXPECT_TRUE(row.ok()) << row.status();
        changed[key] = row.ok() ? *row : nullptr;
      }
      const RecordBytes after = Next(5) ? Bytes("value" + std::to_string(random_())) : nullptr;
      writes.push_back({key, changed[key], after});
      changed[key] = after;
    }
    return writes;
  }

 private:
  std::mt19937_64 random_;
  const uint32_t keyspaces_;
};

inline void RecountAll(Store& store) {
  for (int step = 0; step < 1'000'000; ++step) {
    if (!store.RecountSome(100)) return;
  }
  FAIL() << "recounting does not end";
}

}  // namespace gyre
