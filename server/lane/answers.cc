// Answers what the core asks about stored rows.
#include "server/lane/answers.h"

#include <memory>
#include <string>
#include <utility>

#include "storage/damage.h"
#include "storage/format/meta_codec.h"
#include "storage/format/row_key.h"

namespace gyre {

peer::FetchPageReply PageOf(Engine& engine, const peer::FetchPage& page) {
  peer::FetchPageReply reply = {.complete = true};
  size_t bytes = 0;
  // The first key behind `after` is `after` with a NUL.
  KeyRange range = {.begin = page.after + '\0', .end = page.end};
  const Table table = IsHintKey(page.after)      ? Table::kHints
                      : IsCollectKey(page.after) ? Table::kCollect
                                                 : Table::kRows;
  const auto take = [&](std::string_view row_key, std::string_view record) {
    if (!reply.rows.empty() &&
        (reply.rows.size() >= page.rows_max || bytes + record.size() > page.bytes_max)) {
      reply.complete = false;
      return false;
    }
    bytes += row_key.size() + record.size();
    reply.rows.push_back({std::string(row_key), std::make_shared<const std::string>(record)});
    return true;
  };
  for (absl::Status status = engine.Scan(table, range, take); !status.ok();
       status = engine.Scan(table, range, take)) {
    if (!page.skip_damage || !absl::IsDataLoss(status)) return {.code = status.code()};
    if (!reply.rows.empty()) {  // the next page begins with the damage
      reply.complete = false;
      return reply;
    }
    reply.skipped = true;
    range.begin = BehindDamage(engine, table, range);
    if (range.begin >= range.end) break;
  }
  return reply;
}

SumsRead SumsOf(Store& store, const SumRequest& request) {
  SumsRead read = {.request = request};
  read.sums.reserve(request.slices.size());
  for (const peer::Slice& slice : request.slices) {
    const absl::StatusOr<RowHash> sum = store.SumOfRange(slice.keyspace, slice.begin.value, slice.end.value);
    read.sums.push_back(sum.ok() ? std::optional(*sum) : std::nullopt);
  }
  return read;
}

std::vector<EngineWrite> FactsOf(const Disk::Batch& batch) {
  std::vector<EngineWrite> facts;
  const auto set = [&](std::string_view key, std::string value) {
    facts.push_back({Table::kMeta, std::string(key), std::make_shared<const std::string>(std::move(value))});
  };
  if (batch.actor) set(kMetaActor, EncodeActorState(*batch.actor));
  if (batch.moves) set(kMetaMoves, *batch.moves);
  if (batch.cuts) set(kMetaStableCut, EncodeCutMarks(*batch.cuts));
  for (const std::string& key : batch.stale) facts.push_back({Table::kCollect, key, nullptr});
  if (batch.filled) facts.push_back({Table::kMeta, std::string(kMetaFilling), nullptr});
  return facts;
}

}  // namespace gyre
