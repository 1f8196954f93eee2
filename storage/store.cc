// Committing rows with their sums, and saving the sums.
//
// How the sums stay exact across restarts: every commit that changes them has a number and leaves a note in
// the log, which names the number before it. A snapshot says up to which number it holds everything. So
// snapshot plus the notes of higher numbers are the truth, if no note is missing, and a missing one shows. A
// failed commit may turn up after a crash or may not; so the leaves it touched are put in doubt by the note
// of the next commit (whoever replays that one cannot trust them) and by every snapshot of this life (for
// rows of it that turn up behind a snapshot's back).
#include "storage/store.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <utility>

#include "storage/format/row_key.h"

namespace gyre {
namespace {

std::string SnapshotKey(uint32_t keyspace) {
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(keyspace));
  return std::string(kMetaSums) + digits;
}

bool IsSnapshotKey(const EngineWrite& write) {
  return write.table == Table::kMeta && std::string_view(write.key).starts_with(kMetaSums);
}

Table TableOf(std::string_view row_key) { return IsHintKey(row_key) ? Table::kHints : Table::kRows; }

uint64_t BytesOf(std::span<const EngineWrite> writes) {
  uint64_t bytes = 0;
  for (const EngineWrite& write : writes) bytes += write.key.size() + (write.value ? write.value->size() : 0);
  return bytes;
}

}  // namespace

absl::Status Store::Commit(std::span<const RowWrite> rows, std::span<const EngineWrite> others,
                           Durability durability) {
  if (rows.empty() && others.empty()) return absl::OkStatus();
  std::vector<EngineWrite> batch;
  batch.reserve(rows.size() + others.size() + 1);
  for (const RowWrite& row : rows) batch.push_back({TableOf(row.row_key), row.row_key, row.after});
  AddCollectKeys(rows, batch);
  for (const EngineWrite& other : others) {
    assert(other.table != Table::kRows);
    assert(!IsSnapshotKey(other));
    batch.push_back(other);
  }

  const std::vector<Delta> deltas = DeltasOf(rows);
  for (const Delta& delta : deltas) SumsOf(delta.keyspace);
  SumsNote note = NoteOf(deltas);
  std::string note_bytes;
  if (!note.keyspaces.empty()) {
    // The log alone does not lead to a tree that has no snapshot: it gets one here, of what it was before
    // this commit.
    for (const KeyspaceNote& each : note.keyspaces) {
      const Sums& sums = *sums_.at(each.keyspace);
      if (!sums.saved) batch.push_back(SnapshotOf(each.keyspace, sums));
    }
    note.number = ++number_;
    note.previous = applied_number_;
    note_bytes = EncodeSumsNote(note);
  }

  absl::Status status = engine_.Apply(batch, durability, note_bytes);
  if (!status.ok()) {
    Failed(deltas);
    return status;
  }
  bytes_since_save_ += BytesOf(batch) + note_bytes.size();
  CountCollectKeys(batch);
  Committed(deltas, note);
  return status;
}

// What `rows` change, by keyspace and leaf, each leaf once and none by zero. Changes of one row telescope.
std::vector<Store::Delta> Store::DeltasOf(std::span<const RowWrite> rows) {
  std::vector<Delta> deltas;
  deltas.reserve(rows.size());
  for (const RowWrite& row : rows) {
    if (IsHintKey(row.row_key)) continue;  // no replica's business
    RowKeyParts parts;
    const bool whole = ParseRowKey(row.row_key, parts);
    assert(whole);
    (void)whole;
    Delta delta{.keyspace = parts.keyspace, .leaf = MerkleTree::LeafOf(parts.token), .sum = {}, .change = {}};
    if (row.before == row.after) continue;
    if (row.after) {
      delta.sum += HashRow(row.row_key, *row.after);
      delta.change.rows += 1;
      delta.change.bytes += static_cast<int64_t>(row.row_key.size() + row.after->size());
    }
    if (row.before) {
      delta.sum -= HashRow(row.row_key, *row.before);
      delta.change.rows -= 1;
      delta.change.bytes -= static_cast<int64_t>(row.row_key.size() + row.before->size());
    }
    deltas.push_back(delta);
  }
  const auto place = [](const Delta& delta) { return uint64_t{delta.keyspace} << 32 | delta.leaf; };
  std::sort(deltas.begin(), deltas.end(),
            [&](const Delta& a, const Delta& b) { return place(a) < place(b); });
  size_t kept = 0;
  for (size_t i = 0; i < deltas.size();) {
    Delta sum = deltas[i];
    while (++i < deltas.size() && place(deltas[i]) == place(sum)) {
      sum.sum += deltas[i].sum;
      sum.change.rows += deltas[i].change.rows;
      sum.change.bytes += deltas[i].change.bytes;
    }
    if (sum.sum != RowHash{}) deltas[kept++] = sum;
  }
  deltas.resize(kept);
  return deltas;
}

// Everything but the numbers.
SumsNote Store::NoteOf(const std::vector<Delta>& deltas) const {
  SumsNote note;
  size_t next = 0;
  for (const auto& [keyspace, sums] : sums_) {
    KeyspaceNote each;
    each.keyspace = keyspace;
    for (; next < deltas.size() && deltas[next].keyspace == keyspace; ++next) {
      each.deltas.push_back({.leaf = static_cast<uint16_t>(deltas[next].leaf), .sum = deltas[next].sum});
    }
    const LeafSet& unannounced = sums->unannounced;
    for (uint32_t leaf = unannounced.Next(0); leaf < kMerkleLeaves; leaf = unannounced.Next(leaf + 1)) {
      each.in_doubt.push_back(static_cast<uint16_t>(leaf));
    }
    if (!each.deltas.empty() || !each.in_doubt.empty()) note.keyspaces.push_back(std::move(each));
  }
  assert(next == deltas.size());
  return note;
}

void Store::Committed(const std::vector<Delta>& deltas, const SumsNote& note) {
  if (note.keyspaces.empty()) return;
  applied_number_ = note.number;
  for (const KeyspaceNote& each : note.keyspaces) {
    Sums& sums = *sums_.at(each.keyspace);
    sums.saved = true;
    sums.unannounced.Clear();
  }
  for (const Delta& delta : deltas) {
    Sums& sums = *sums_.at(delta.keyspace);
    sums.tree->Add(delta.leaf, delta.sum);
    sums.census.Apply(delta.leaf, delta.change);
  }
  for (const KeyspaceNote& each : note.keyspaces) PublishTotals(each.keyspace);
}

void Store::Failed(const std::vector<Delta>& deltas) {
  for (const Delta& delta : deltas) {
    Sums& sums = *sums_.at(delta.keyspace);
    sums.tree->Doubt(delta.leaf);
    sums.unannounced.Insert(delta.leaf);
    sums.suspect.Insert(delta.leaf);
  }
}

Store::Sums& Store::SumsOf(uint32_t keyspace) {
  std::unique_ptr<Sums>& sums = sums_[keyspace];
  if (sums == nullptr) {
    sums = std::make_unique<Sums>();
    if (!all_listed_) {
      sums->tree->DoubtAll();
    } else {
      sums->census.StartEmpty();
    }
  }
  return *sums;
}

std::vector<absl::StatusOr<RecordBytes>> Store::ReadRows(std::span<const std::string> row_keys) {
  std::vector<absl::StatusOr<RecordBytes>> rows(row_keys.size(), RecordBytes());
  for (const Table table : {Table::kRows, Table::kHints}) {
    std::vector<std::string> keys;
    std::vector<size_t> places;
    for (size_t i = 0; i < row_keys.size(); ++i) {
      if (TableOf(row_keys[i]) != table) continue;
      keys.push_back(row_keys[i]);
      places.push_back(i);
    }
    if (keys.empty()) continue;
    std::vector<absl::StatusOr<std::string>> values = engine_.MultiGet(table, keys);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (values[i].ok()) {
        rows[places[i]] = std::make_shared<const std::string>(*std::move(values[i]));
      } else if (!absl::IsNotFound(values[i].status())) {
        rows[places[i]] = values[i].status();
      }
    }
  }
  return rows;
}

bool Store::InDoubt(uint32_t keyspace) const {
  const MerkleTree* tree = Tree(keyspace);
  return tree == nullptr ? !all_listed_ : !tree->in_doubt().empty();
}

const MerkleTree* Store::Tree(uint32_t keyspace) const {
  const auto found = sums_.find(keyspace);
  return found == sums_.end() ? nullptr : found->second->tree.get();
}

EngineWrite Store::SnapshotOf(uint32_t keyspace, const Sums& sums) const {
  const SumsPosition position{.sequence = engine_.LastSequence(), .number = number_};
  return {Table::kMeta, SnapshotKey(keyspace),
          std::make_shared<const std::string>(EncodeSumsSnapshot(position, *sums.tree, sums.suspect))};
}

absl::Status Store::SaveSums() {
  // A snapshot must not outlive commits that it holds.
  if (absl::Status status = engine_.Sync(); !status.ok()) return status;
  for (auto& [keyspace, sums] : sums_) {
    const EngineWrite snapshot = SnapshotOf(keyspace, *sums);
    if (absl::Status status = engine_.Apply({&snapshot, 1}, Durability::kDisk, {}); !status.ok())
      return status;
    sums->saved = true;
    sums->unannounced.Clear();
    sums->unreadable.Clear();
  }
  bytes_since_save_ = 0;
  CountCollectibleAnew();
  return absl::OkStatus();
}

absl::Status Store::DropKeyspace(uint32_t keyspace) {
  // Without a snapshot, whatever a crash leaves of the rows is in doubt.
  const EngineWrite forget{Table::kMeta, SnapshotKey(keyspace), nullptr};
  if (absl::Status status = engine_.Apply({&forget, 1}, Durability::kDisk, {}); !status.ok()) return status;
  const auto found = sums_.find(keyspace);
  if (found != sums_.end()) found->second->saved = false;
  // Nothing of what is dropped is to be collected, also if a crash leaves rows for a second attempt.
  const KeyRange collect = {.begin = CollectKeyFloor(keyspace, 0), .end = CollectKeyFloor(keyspace + 1, 0)};
  if (absl::Status status = engine_.EraseRange(Table::kCollect, collect); !status.ok()) return status;
  CountCollectibleAnew();
  absl::Status status = engine_.EraseRange(
      Table::kRows, {.begin = RowKeyFloor(keyspace, 0), .end = RowKeyCeiling(keyspace, UINT64_MAX)});
  if (status.ok()) {
    if (found != sums_.end()) sums_.erase(found);
    PublishTotals(keyspace);
  } else {
    Sums& sums = SumsOf(keyspace);
    sums.census.StartCount();
    sums.tree->DoubtAll();
    sums.unannounced.InsertAll();
    sums.suspect.InsertAll();
  }
  return status;
}

}  // namespace gyre
