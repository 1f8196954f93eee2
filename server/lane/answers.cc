// Answers what the core asks about stored rows.
#include "server/lane/answers.h"

#include <memory>
#include <string>

#include "storage/format/row_key.h"

namespace gyre {

peer::FetchPageReply PageOf(Engine& engine, const peer::FetchPage& page) {
  peer::FetchPageReply reply = {.complete = true};
  size_t bytes = 0;
  // The first key behind `after` is `after` with a NUL.
  const KeyRange range = {.begin = page.after + '\0', .end = page.end};
  const Table table = IsHintKey(page.after) ? Table::kHints : Table::kRows;
  const absl::Status status =
      engine.Scan(table, range, [&](std::string_view row_key, std::string_view record) {
        if (!reply.rows.empty() &&
            (reply.rows.size() >= page.rows_max || bytes + record.size() > page.bytes_max)) {
          reply.complete = false;
          return false;
        }
        bytes += row_key.size() + record.size();
        reply.rows.push_back({std::string(row_key), std::make_shared<const std::string>(record)});
        return true;
      });
  if (!status.ok()) return {.code = status.code()};
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

}  // namespace gyre
