// The rows of a backup: a merge of sorted runs.
#include "client/backup/merged_rows.h"

#include <algorithm>
#include <set>
#include <utility>

#include "storage/format/row_key.h"

namespace gyre::backup {
namespace {

constexpr size_t kKeyBytesShown = 100;
constexpr size_t kLoadedMax = 4096;  // names of chunks that may still be loaded

ConflictRule RuleOf(const KeyspaceInfo& keyspace) {
  return keyspace.conflict == "last-write-wins" ? ConflictRule::kLastWriteWins : ConflictRule::kSiblings;
}

// Of a chunk that is not there, as a backup's own loss.
absl::Status Missing(const Manifest::Chunk& chunk, const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return absl::DataLossError("the chunk " + chunk.name +
                             " of the backup is missing: " + std::string(status.message()));
}

absl::StatusOr<std::string> ReadChunk(const Directory& directory, const Manifest::Chunk& chunk) {
  absl::StatusOr<std::string> content = directory.ReadChunk(chunk.name);
  if (!content.ok()) return Missing(chunk, content.status());
  if (content->size() != chunk.bytes) {
    return absl::DataLossError("the chunk " + chunk.name + " of the backup has " +
                               std::to_string(content->size()) + " bytes, and its manifest says " +
                               std::to_string(chunk.bytes));
  }
  return content;
}

}  // namespace

MergedRows::MergedRows(const Directory& directory, const Manifest& manifest)
    : directory_(directory), manifest_(manifest) {
  for (const KeyspaceInfo& keyspace : manifest.keyspaces) keyspaces_[keyspace.id] = &keyspace;
  for (size_t place = 0; place < manifest.nodes.size(); ++place) {
    const Manifest::Node& node = manifest.nodes[place];
    auto& complete = complete_.emplace_back();
    for (const BackupRange& range : node.complete) {
      std::vector<Span>& spans = complete[range.keyspace];
      if (range.begin < range.end) {
        spans.push_back({range.begin + 1, range.end});
        continue;
      }
      spans.push_back({0, range.end});
      if (range.begin != UINT64_MAX) spans.push_back({range.begin + 1, UINT64_MAX});
    }
    for (auto& [keyspace, spans] : complete) std::ranges::sort(spans, {}, &Span::first);
    for (const Manifest::Run& run : node.runs) {
      sources_.push_back({.node = &node, .place = place, .run = &run});
    }
  }
}

absl::StatusOr<std::shared_ptr<const MergedRows::Loaded>> MergedRows::Load(const Manifest::Chunk& chunk) {
  if (std::shared_ptr<const Loaded> held = loaded_[chunk.name].lock()) return held;
  if (loaded_.size() > kLoadedMax) {
    absl::erase_if(loaded_,
                   [&](const auto& entry) { return entry.first != chunk.name && entry.second.expired(); });
  }
  absl::StatusOr<std::string> content = ReadChunk(directory_, chunk);
  if (!content.ok()) return content.status();
  auto loaded = std::make_shared<Loaded>();
  loaded->content = *std::move(content);
  absl::StatusOr<std::vector<ChunkRow>> rows = DecodeChunk(loaded->content);
  if (!rows.ok()) {
    return absl::Status(rows.status().code(), chunk.name + ": " + std::string(rows.status().message()));
  }
  if (rows->size() != chunk.rows) {
    return absl::DataLossError("the chunk " + chunk.name + " of the backup has " +
                               std::to_string(rows->size()) + " rows, and its manifest says " +
                               std::to_string(chunk.rows));
  }
  loaded->rows = *std::move(rows);
  loaded_[chunk.name] = loaded;
  return loaded;
}

// To the next row of the source, which comes after the one before.
absl::Status MergedRows::Advance(Source& source) {
  const std::shared_ptr<const Loaded> before = source.chunk;
  const std::string_view last = before ? source.row_key() : std::string_view();
  if (before && ++source.at < before->rows.size()) return absl::OkStatus();
  source.chunk = nullptr;
  source.at = 0;
  if (source.next_chunk == source.run->chunks.size()) return absl::OkStatus();
  const Manifest::Chunk& chunk = source.run->chunks[source.next_chunk++];
  absl::StatusOr<std::shared_ptr<const Loaded>> loaded = Load(chunk);
  if (!loaded.ok()) return loaded.status();
  source.chunk = *std::move(loaded);
  if (source.row_key() <= last) {
    return absl::DataLossError("the chunk " + chunk.name +
                               " of the backup is not in its place: the rows of node " + source.node->id +
                               " are not in order");
  }
  return absl::OkStatus();
}

absl::Status MergedRows::Begin() {
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (absl::Status status = Advance(sources_[i]); !status.ok()) return status;
    if (sources_[i].chunk) heap_.push_back(i);
  }
  std::ranges::make_heap(
      heap_, [this](size_t a, size_t b) { return sources_[a].row_key() > sources_[b].row_key(); });
  begun_ = true;
  return absl::OkStatus();
}

bool MergedRows::IsComplete(size_t node, uint32_t keyspace, uint64_t token) const {
  const auto spans = complete_[node].find(keyspace);
  if (spans == complete_[node].end()) return false;
  const auto behind = std::ranges::upper_bound(spans->second, token, {}, &Span::first);
  return behind != spans->second.begin() && std::prev(behind)->last >= token;
}

// What the sources of same_ hold of the row, under the cuts that their nodes held; and what those nodes say
// that should have it and do not.
absl::StatusOr<RecordBytes> MergedRows::MergeNext(const KeyspaceInfo& keyspace, uint64_t token) const {
  CutRecord merged;
  std::string_view first;
  bool has_it = false;
  std::vector<bool> held(manifest_.nodes.size(), false);
  for (const size_t i : same_) {
    const Source& source = sources_[i];
    const bool rows = source.run->hints_for.empty();
    const bool complete = rows && IsComplete(source.place, keyspace.id, token);
    if (rows) held[source.place] = true;
    const std::string_view record = source.chunk->rows[source.at].record;
    const uint64_t cut = complete ? source.node->stable_cut : 0;
    if (has_it && record == first && merged.record != nullptr && *merged.record == first) {
      merged.cut = std::max(merged.cut, cut);
      continue;
    }
    if (!has_it) first = record;
    const CutRecord theirs = {std::make_shared<const std::string>(record), cut};
    if (!has_it) {
      merged = theirs;
      has_it = true;
      continue;
    }
    absl::StatusOr<CutRecord> both = MergeAtCuts(merged, theirs, RuleOf(keyspace));
    if (!both.ok()) return both.status();
    merged = *std::move(both);
  }
  for (size_t node = 0; node < manifest_.nodes.size(); ++node) {
    if (held[node] || manifest_.nodes[node].stable_cut <= merged.cut) continue;
    if (!IsComplete(node, keyspace.id, token)) continue;
    absl::StatusOr<CutRecord> both =
        MergeAtCuts(merged, {EmptyRecord(), manifest_.nodes[node].stable_cut}, RuleOf(keyspace));
    if (!both.ok()) return both.status();
    merged = *std::move(both);
  }
  return merged.record;
}

absl::StatusOr<bool> MergedRows::Next(MergedRow& row) {
  if (!begun_) {
    if (absl::Status status = Begin(); !status.ok()) return status;
  }
  const auto later = [this](size_t a, size_t b) { return sources_[a].row_key() > sources_[b].row_key(); };
  while (!heap_.empty()) {
    row.row_key = std::string(sources_[heap_.front()].row_key());
    same_.clear();
    while (!heap_.empty() && sources_[heap_.front()].row_key() == row.row_key) {
      std::ranges::pop_heap(heap_, later);
      same_.push_back(heap_.back());
      heap_.pop_back();
    }
    rows_read_ += same_.size();
    RowKeyParts parts;
    const bool whole = ParseRowKey(row.row_key, parts);
    const auto keyspace = whole ? keyspaces_.find(parts.keyspace) : keyspaces_.end();
    absl::StatusOr<RecordBytes> merged = RecordBytes();
    if (keyspace != keyspaces_.end()) merged = MergeNext(*keyspace->second, parts.token);
    absl::StatusOr<Record> record = Record{};
    if (!merged.ok()) {
      record = merged.status();
    } else if (*merged != nullptr && !IsEmptyRecord(*merged)) {
      record = DecodeRecord(**merged);
    }
    row.key = std::string(parts.key);
    if (!record.ok()) {
      return absl::Status(record.status().code(), "key \"" + row.key.substr(0, kKeyBytesShown) +
                                                      "\" of keyspace " + keyspace->second->name + ": " +
                                                      std::string(record.status().message()));
    }
    for (const size_t i : same_) {
      if (absl::Status status = Advance(sources_[i]); !status.ok()) return status;
      if (!sources_[i].chunk) continue;
      heap_.push_back(i);
      std::ranges::push_heap(heap_, later);
    }
    if (record->empty()) continue;  // of a keyspace that was dropped meanwhile, or nothing is left
    row.keyspace = keyspace->second;
    row.record = *std::move(record);
    return true;
  }
  return false;
}

absl::Status VerifyChunks(const Directory& directory, const Manifest& manifest,
                          const std::function<void(uint64_t bytes)>& progress) {
  std::set<std::string_view> seen;
  uint64_t bytes = 0;
  for (const Manifest::Node& node : manifest.nodes) {
    for (const Manifest::Run& run : node.runs) {
      for (const Manifest::Chunk& chunk : run.chunks) {
        if (!seen.insert(chunk.name).second) continue;
        const absl::StatusOr<std::string> content = ReadChunk(directory, chunk);
        if (!content.ok()) return content.status();
        progress(bytes += content->size());
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace gyre::backup
