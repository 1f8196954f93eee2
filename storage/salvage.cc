// Copying what can be read of a damaged store into a new one.
#include "storage/salvage.h"

#include <memory>
#include <utility>
#include <vector>

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

// Writes what is read of one table of the damaged store to the new one.
class Copy final : public Remains::Reader {
 public:
  Copy(Table table, Store& fresh, absl::FunctionRef<bool()> go_on, Salvaged& done, uint64_t& copied)
      : table_(table), fresh_(fresh), go_on_(go_on), done_(done), copied_(copied) {}

  absl::Status From(Remains& damaged) {
    if (!GoOn()) return status_;
    const absl::Status status = damaged.Scan(table_, RangeOf(table_), *this);
    if (status_.ok()) Write();
    return status_.ok() ? status : status_;
  }

  bool Entry(std::string_view key, std::string_view record) override {
    if (!IsSound(table_, key, record)) {
      Damage(absl::DataLossError("a row fails its checksum"));
      return true;
    }
    bytes_ += key.size() + record.size();
    batch_.push_back({std::string(key), nullptr, BytesOf(record)});
    return bytes_ < kBatchBytes || (Write() && GoOn());
  }

  void Damage(const absl::Status& what) override {
    if (done_.places++ == 0) done_.first = what;
  }

  bool GoOn() override {
    if (go_on_()) return true;
    status_ = absl::CancelledError("the rebuilding of the store was told to end");
    return false;
  }

 private:
  bool Write() {
    status_ = fresh_.Commit(batch_, {}, Durability::kMemory);
    if (!status_.ok()) return false;
    copied_ += batch_.size();
    batch_.clear();
    bytes_ = 0;
    return true;
  }

  const Table table_;
  Store& fresh_;
  const absl::FunctionRef<bool()> go_on_;
  Salvaged& done_;
  uint64_t& copied_;
  std::vector<RowWrite> batch_;
  size_t bytes_ = 0;
  absl::Status status_;  // why it ended
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

absl::StatusOr<Salvaged> Salvage(Remains& damaged, Store& fresh, absl::FunctionRef<bool()> go_on) {
  const auto facts = FactsToKeep(damaged.engine());
  if (!facts.ok()) return facts.status();
  Salvaged done;
  for (const auto& [table, copied] : {std::pair(Table::kRows, &done.rows), {Table::kHints, &done.hints}}) {
    const absl::Status status = Copy(table, fresh, go_on, done, *copied).From(damaged);
    if (!status.ok()) return status;
  }
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
