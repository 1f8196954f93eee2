// Commits batches of rows with and without the Merkle sums over them, in turn, and says what the sums cost.
//
// Usage: store_load DIRECTORY ROUNDS BATCHES. Each round commits BATCHES batches either way, synced. The rows
// replace older ones, whose hashes are taken away: the dearest case.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "storage/format/row_key.h"
#include "storage/rocks_engine.h"
#include "storage/store.h"

namespace gyre {
namespace {

constexpr size_t kRows = 100'000;
constexpr size_t kValueBytes = 100;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "store_load: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

// A store of its own, of rows that are replaced again and again.
class Load {
 public:
  explicit Load(const std::string& path, bool sums) : sums_(sums) {
    absl::StatusOr<std::unique_ptr<Engine>> engine = RocksEngine::Open(path);
    Check(engine.status());
    engine_ = *std::move(engine);
    store_ = std::make_unique<Store>(*engine_);
    for (size_t i = 0; i < kRows; ++i) {
      const uint64_t token = random_();
      rows_.push_back({.row_key = MakeRowKey(1, token, "key-" + std::to_string(i)), .record = nullptr});
    }
    for (size_t i = 0; i < kRows; i += 1000) Commit(1000, [&, next = i]() mutable { return next++; });
  }

  // Microseconds a row: of this machine, and of its processors.
  struct Cost {
    double us = 0;
    double cpu_us = 0;
  };
  Cost Run(size_t batches, size_t batch_rows) {
    const std::clock_t cpu_begun = std::clock();
    const auto begun = std::chrono::steady_clock::now();
    for (size_t i = 0; i < batches; ++i) Commit(batch_rows, [&] { return random_() % kRows; });
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begun;
    const double cpu_took = 1e6 * static_cast<double>(std::clock() - cpu_begun) / CLOCKS_PER_SEC;
    const auto rows = static_cast<double>(batches * batch_rows);
    return {took.count() / rows, cpu_took / rows};
  }

 private:
  struct Row {
    std::string row_key;
    RecordBytes record;
  };

  void Commit(size_t count, const std::function<size_t()>& which) {
    std::vector<RowWrite> writes;
    for (size_t i = 0; i < count; ++i) {
      Row& row = rows_[which()];
      RecordBytes before = row.record;
      row.record = Next();
      writes.push_back({row.row_key, std::move(before), row.record});
    }
    if (sums_) return Check(store_->Commit(writes, {}, Durability::kDisk));
    std::vector<EngineWrite> batch;
    for (const RowWrite& write : writes) batch.push_back({Table::kRows, write.row_key, write.after});
    Check(engine_->Apply(batch, Durability::kDisk, {}));
  }

  RecordBytes Next() {
    Record record;
    std::string value(kValueBytes, '\0');
    for (char& byte : value) byte = static_cast<char>(random_());
    ApplyPut(record, {.dot = {{1, 1}, ++counter_}, .value = std::move(value)}, nullptr);
    return std::make_shared<const std::string>(EncodeRecord(record));
  }

  const bool sums_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Store> store_;
  std::mt19937_64 random_{1};
  std::vector<Row> rows_;
  uint64_t counter_ = 0;
};

void Main(const std::string& directory, int rounds, size_t batches) {
  Load with(directory + "/with", true);
  Load without(directory + "/without", false);
  for (const size_t batch_rows : {64, 256}) {
    for (int round = 0; round < rounds; ++round) {
      // Whoever comes second may meet the other's compactions: each does in turn.
      const bool first = round % 2 == 0;
      const Load::Cost one = (first ? with : without).Run(batches, batch_rows);
      const Load::Cost other = (first ? without : with).Run(batches, batch_rows);
      const Load::Cost& with_sums = first ? one : other;
      const Load::Cost& without_sums = first ? other : one;
      std::printf(
          "{\"batch\":%zu,\"with_us\":%.3f,\"without_us\":%.3f,\"with_cpu_us\":%.3f,\"without_cpu_us\":%.3f}"
          "\n",
          batch_rows, with_sums.us, without_sums.us, with_sums.cpu_us, without_sums.cpu_us);
    }
  }
}

}  // namespace
}  // namespace gyre

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: store_load DIRECTORY ROUNDS BATCHES\n");
    return 2;
  }
  gyre::Main(argv[1], std::atoi(argv[2]), static_cast<size_t>(std::atoi(argv[3])));
}
