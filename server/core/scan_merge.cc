// ScanMerge: one page of one range of a scan, merged from several replicas.
#include "server/core/scan_merge.h"

#include <algorithm>
#include <map>
#include <utility>

namespace gyre {

auto ScanMerge::Ask(const Turn& turn, OpId op) const {
  return [this, &turn, op](NodeId to) { turn.Send(to, op, page_); };
}

void ScanMerge::Start(const Turn& turn, OpId op) { fanout_.Start(turn, Ask(turn, op)); }

void ScanMerge::AskNext(const Turn& turn, OpId op) { fanout_.AskNext(turn, Ask(turn, op)); }

Verdict ScanMerge::Lost(const Turn& turn, OpId op, NodeId node) {
  return fanout_.Lost(turn, node, Ask(turn, op));
}

Verdict ScanMerge::Answer(const Turn& turn, OpId op, NodeId from, peer::FetchPageReply reply) {
  const int slot = fanout_.Awaited(from);
  if (slot < 0) return fanout_.verdict();
  // An incomplete page without rows would make no progress, nor would rows of before: its sender is at fault.
  const bool stuck = reply.rows.empty() && !reply.complete;
  const bool strays = !reply.rows.empty() &&
                      (reply.rows.front().row_key <= page_.after || reply.rows.back().row_key >= page_.end);
  if (reply.code != absl::StatusCode::kOk || stuck || strays)
    return fanout_.Failed(turn, slot, Ask(turn, op));
  pages_.push_back(std::move(reply));
  return fanout_.Yes(slot);
}

absl::StatusOr<ScanMerge::Merged> ScanMerge::Take(ConflictRule rule) {
  Merged merged;
  merged.covered_to = page_.end;
  for (const peer::FetchPageReply& page : pages_) {
    if (!page.complete) merged.covered_to = std::min(merged.covered_to, page.rows.back().row_key);
  }
  std::map<std::string, RecordBytes> by_key;
  for (peer::FetchPageReply& page : pages_) {
    for (Row& row : page.rows) {
      if (row.row_key > merged.covered_to) break;
      RecordBytes& record = by_key[std::move(row.row_key)];
      absl::StatusOr<RecordBytes> both = MergeBytes(record, row.record, rule);
      if (!both.ok()) return both.status();
      record = *std::move(both);
    }
  }
  merged.rows.reserve(by_key.size());
  for (auto& [row_key, record] : by_key) merged.rows.push_back({row_key, std::move(record)});
  return merged;
}

}  // namespace gyre
