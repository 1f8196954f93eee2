// The sums of the last life: snapshots, the notes after them, and doubt about everything else.
#include <algorithm>
#include <charconv>

#include "storage/format/row_key.h"
#include "storage/store.h"

namespace gyre {
namespace {

bool ParseSnapshotKey(std::string_view key, uint32_t& keyspace) {
  key.remove_prefix(kMetaSums.size());
  if (key.size() != 8) return false;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), keyspace, 16);
  return error == std::errc() && end == key.data() + key.size();
}

// The first key behind all that start with `prefix`. REQUIRES: its last byte is not 0xff.
std::string BehindPrefix(std::string_view prefix) {
  std::string end(prefix);
  ++end.back();
  return end;
}

}  // namespace

Store::Store(Engine& engine) : engine_(engine) {
  SumsPosition oldest;
  const SnapshotNumbers numbers = LoadSnapshots(oldest);
  if (!numbers.empty() && !Replay(oldest, numbers)) {
    for (auto& [keyspace, sums] : sums_) {
      sums->tree->DoubtAll();
      sums->saved = false;
    }
  }
  applied_number_ = number_;
  // Rows without a snapshot come from a log that lost it, or from a keyspace that was half dropped.
  all_listed_ = ListKeyspaces([this](uint32_t keyspace) {
    if (sums_.contains(keyspace)) return;
    Sums& sums = SumsOf(keyspace);
    sums.census = RowCensus();
    sums.tree->DoubtAll();
  });
}

// Loads what can be read. Sets where the log must be replayed from for the oldest of them.
Store::SnapshotNumbers Store::LoadSnapshots(SumsPosition& oldest) {
  SnapshotNumbers numbers;
  const auto load = [&](std::string_view key, std::string_view value) {
    uint32_t keyspace = 0;
    if (!ParseSnapshotKey(key, keyspace)) return true;
    absl::StatusOr<SumsSnapshot> snapshot = DecodeSumsSnapshot(value);
    if (!snapshot.ok()) return true;
    const SumsPosition& position = snapshot->position;
    oldest = numbers.empty() ? position
                             : SumsPosition{.sequence = std::min(oldest.sequence, position.sequence),
                                            .number = std::min(oldest.number, position.number)};
    number_ = std::max(number_, position.number);
    numbers[keyspace] = position.number;
    Sums& sums = SumsOf(keyspace);
    sums.census = RowCensus();
    sums.tree = std::move(snapshot->tree);
    sums.saved = true;
    return true;
  };
  // A snapshot that cannot be read is like one that is not there: its rows will be found, and doubted.
  engine_.Scan(Table::kMeta, {.begin = std::string(kMetaSums), .end = BehindPrefix(kMetaSums)}, load)
      .IgnoreError();
  return numbers;
}

// Adds the notes of the log to the snapshots. False when one is missing or garbled.
bool Store::Replay(const SumsPosition& oldest, const SnapshotNumbers& numbers) {
  bool complete = true;
  uint64_t last = oldest.number;
  const absl::Status status = engine_.ReplayNotes(oldest.sequence, [&](std::string_view bytes) {
    if (!complete) return;
    const absl::StatusOr<SumsNote> note = DecodeSumsNote(bytes);
    // A failed commit from before the snapshots, which turned up behind them: they doubt what it touched.
    if (note.ok() && note->number <= oldest.number) return;
    // What lies between `previous` and `number` failed: it is there or not.
    complete = note.ok() && note->previous <= last && last < note->number;
    if (!complete) return;
    last = note->number;
    for (const KeyspaceNote& each : note->keyspaces) {
      const auto snapshot = numbers.find(each.keyspace);
      if (snapshot == numbers.end() || note->number <= snapshot->second) continue;
      MerkleTree& tree = *sums_.at(each.keyspace)->tree;
      for (const KeyspaceNote::Delta& delta : each.deltas) tree.Add(delta.leaf, delta.sum);
      for (const uint16_t leaf : each.in_doubt) tree.Doubt(leaf);
    }
  });
  number_ = std::max(number_, last);
  return complete && status.ok();
}

// Visits each keyspace that has rows, at the price of one seek each. False when not all could be found.
bool Store::ListKeyspaces(absl::FunctionRef<void(uint32_t keyspace)> visit) {
  std::string begin = RowKeyFloor(0, 0);
  while (!begin.empty()) {
    RowKeyParts parts;
    bool found = false;
    const absl::Status status = engine_.Scan(Table::kRows, {.begin = begin, .end = {}}, [&](auto key, auto) {
      found = ParseRowKey(key, parts);
      return !found;
    });
    if (!status.ok()) return false;
    if (!found) return true;
    visit(parts.keyspace);
    begin = RowKeyCeiling(parts.keyspace, UINT64_MAX);
  }
  return true;
}

}  // namespace gyre
