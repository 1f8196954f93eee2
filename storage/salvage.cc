// Copying what can be read of a damaged store into a new one.
#include "storage/salvage.h"

#include <memory>
#include <utility>
#include <vector>

#include "storage/damage.h"
#include "storage/format/meta_codec.h"
#include "storage/format/row_key.h"

namespace gyre {
namespace {

constexpr size_t kBatchBytes = 1 << 20;

RecordBytes BytesOf(std::string_view bytes) { return std::make_shared<const std::string>(bytes); }

KeyRange RangeOf(Table table) {
  if (table == Table::kHints) {
    // Behind all: no hinted row is of the last keyspace.
    return {.begin = RowKeyFloor(kHintsKeyspace, 0), .end = std::string(24, '\xff')};
  }
  return {.begin = RowKeyFloor(0, 0), .end = RowKeyFloor(kCollectKeyspace, 0)};
}

// Whether an entry is what the table is for: a record that fails its own checksum would stay unequal for
// ever.
bool IsSound(Table table, std::string_view key, std::string_view record) {
  RowKeyParts parts;
  uint64_t node = 0;
  std::string_view row_key;
  const bool whole = table == Table::kHints ? ParseHintKey(key, node, row_key) : ParseRowKey(key, parts);
  return whole && !absl::IsDataLoss(DecodeRecord(record).status());
}

class Copy {
 public:
  Copy(Engine& damaged, Store& fresh, absl::FunctionRef<bool()> go_on, Salvaged& done)
      : damaged_(damaged), fresh_(fresh), go_on_(go_on), done_(done) {}

  absl::Status Rows(Table table, uint64_t& copied) {
    KeyRange range = RangeOf(table);
    for (bool more = true; more && range.begin < range.end;) {
      if (!go_on_()) return absl::CancelledError("the rebuilding of the store was told to end");
      std::vector<RowWrite> batch;
      size_t bytes = 0;
      std::string next = range.begin;
      more = false;
      const auto take = [&](std::string_view key, std::string_view record) {
        more = bytes >= kBatchBytes;
        if (more) return false;
        bytes += key.size() + record.size();
        next = std::string(key) + '\0';
        if (IsSound(table, key, record)) {
          batch.push_back({std::string(key), nullptr, BytesOf(record)});
        } else {
          PassOver(absl::DataLossError("a row fails its checksum"));
        }
        return true;
      };
      const absl::Status status = damaged_.Scan(table, range, take);
      if (!status.ok() && !absl::IsDataLoss(status)) return status;
      if (absl::Status written = fresh_.Commit(batch, {}, Durability::kMemory); !written.ok()) return written;
      copied += batch.size();
      range.begin = std::move(next);
      if (status.ok()) continue;
      PassOver(status);
      range.begin = BehindDamage(damaged_, table, range);
      more = true;
    }
    return absl::OkStatus();
  }

 private:
  void PassOver(const absl::Status& why) {
    if (done_.places++ == 0) done_.first = why;
  }

  Engine& damaged_;
  Store& fresh_;
  const absl::FunctionRef<bool()> go_on_;
  Salvaged& done_;
};

// What the new store remembers of the old one's facts.
absl::StatusOr<std::vector<EngineWrite>> FactsToKeep(Engine& damaged) {
  const auto facts = ReadFacts(damaged);
  if (!facts.ok()) return facts.status();
  std::vector<EngineWrite> kept;
  for (const auto& [name, value] : *facts) {
    if (name == kMetaActor || name == kMetaFilling || name == kMetaMoves) continue;
    if (name != kMetaStableCut) {
      kept.push_back({Table::kMeta, name, BytesOf(value)});
      continue;
    }
    absl::StatusOr<CutMarks> marks = DecodeCutMarks(value);
    if (!marks.ok()) return marks.status();
    marks->cut = 0;
    kept.push_back({Table::kMeta, name, BytesOf(EncodeCutMarks(*marks))});
  }
  return kept;
}

}  // namespace

absl::StatusOr<Salvaged> Salvage(Engine& damaged, Store& fresh, absl::FunctionRef<bool()> go_on) {
  const auto facts = FactsToKeep(damaged);
  if (!facts.ok()) return facts.status();
  Salvaged done;
  Copy copy(damaged, fresh, go_on, done);
  if (absl::Status status = copy.Rows(Table::kRows, done.rows); !status.ok()) return status;
  if (absl::Status status = copy.Rows(Table::kHints, done.hints); !status.ok()) return status;
  if (absl::Status status = fresh.Commit({}, *facts, Durability::kMemory); !status.ok()) return status;
  return done;
}

absl::StatusOr<std::map<std::string, std::string>> ReadFacts(Engine& engine) {
  std::map<std::string, std::string> facts;
  std::string behind_sums(kMetaSums);
  ++behind_sums.back();
  for (const KeyRange& range :
       {KeyRange{.begin = "", .end = std::string(kMetaSums)}, KeyRange{.begin = behind_sums, .end = ""}}) {
    const absl::Status status =
        engine.Scan(Table::kMeta, range, [&](std::string_view name, std::string_view value) {
          facts[std::string(name)] = std::string(value);
          return true;
        });
    if (!status.ok()) return status;
  }
  return facts;
}

}  // namespace gyre
