// Answers what the core asks about stored rows.
#include "server/lane/answers.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "storage/format/meta_codec.h"
#include "storage/format/row_key.h"

namespace gyre {
namespace {

// As much of a key as the search for readable rows tells apart: of a hint, up to its row's token.
constexpr size_t kDigits = 24;

// Halfway between two numbers of kDigits bytes, rounded down.
std::string Middle(const std::string& low, const std::string& high) {
  std::string middle(kDigits, '\0');
  unsigned carry = 0;
  for (size_t i = kDigits; i-- > 0;) {
    const unsigned sum = static_cast<uint8_t>(low[i]) + static_cast<uint8_t>(high[i]) + carry;
    middle[i] = static_cast<char>(sum & 0xff);
    carry = sum >> 8;
  }
  for (size_t i = 0; i < kDigits; ++i) {  // halve it: `carry` is the bit above
    const unsigned digit = carry << 8 | static_cast<uint8_t>(middle[i]);
    middle[i] = static_cast<char>(digit >> 1);
    carry = digit & 1;
  }
  return middle;
}

// Where `range`, whose beginning cannot be read, can be read again; perhaps behind its end. By halves: where
// the middle cannot be read either, that may be another damaged place, so a few places before it are tried
// too. Rows between damaged places that are as close to each other as they are wide may be passed over.
std::string BehindDamage(Engine& engine, Table table, const KeyRange& range) {
  std::string bad = range.begin;
  std::string good = range.end;
  bad.resize(kDigits, '\0');
  good.resize(kDigits, '\0');
  const auto readable = [&](const std::string& from) {
    return from > bad && engine.Scan(table, {from, range.end}, [](auto, auto) { return false; }).ok();
  };
  for (std::string middle = Middle(bad, good); middle > bad; middle = Middle(bad, good)) {
    const std::string quarter = Middle(bad, middle);
    const std::string three_quarters = Middle(quarter, middle);
    const std::string places[] = {Middle(bad, quarter), quarter, Middle(quarter, three_quarters),
                                  three_quarters, Middle(three_quarters, middle)};
    if (readable(middle)) {
      good = middle;
    } else if (const auto* place = std::ranges::find_if(places, readable); place != std::end(places)) {
      good = *place;
    } else {
      bad = middle;
    }
  }
  return good;
}

}  // namespace

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
  if (batch.cuts) set(kMetaStableCut, EncodeCutMarks(*batch.cuts));
  for (const std::string& key : batch.stale) facts.push_back({Table::kCollect, key, nullptr});
  if (batch.filled) facts.push_back({Table::kMeta, std::string(kMetaFilling), nullptr});
  return facts;
}

}  // namespace gyre
