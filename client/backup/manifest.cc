// The manifest of a backup as JSON lines.
#include "client/backup/manifest.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <set>

#include "client/backup/directory.h"
#include "client/backup/json.h"
#include "storage/format/backup_chunk.h"
#include "storage/format/sha256.h"

namespace gyre::backup {
namespace {

constexpr uint64_t kManifestFormat = 1;

std::string Hex(uint64_t value) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016lx", static_cast<unsigned long>(value));
  return digits;
}

absl::Status Damaged(const std::string& what) {
  return absl::DataLossError("the manifest of the backup is damaged: " + what);
}

template <typename T>
T Number(std::string_view text, int base) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw Wrong{"\"" + std::string(text.substr(0, 40)) + "\" is not a number"};
  }
  return value;
}

Json ReplicasJson(const std::optional<Replicas>& replicas) {
  if (!replicas) return "quorum";
  switch (replicas->kind()) {
    case Replicas::Kind::kOne:
      return "one";
    case Replicas::Kind::kAll:
      return "all";
    case Replicas::Kind::kCount:
      return replicas->count();
    case Replicas::Kind::kQuorum:
      break;
  }
  return "quorum";
}

Replicas TakeReplicas(const Json& object, const char* name) {
  const Json json = Take<Json>(object, name);
  constexpr int64_t kCountMax = std::numeric_limits<int64_t>::max();
  if (json.is_number_unsigned() && json.get<uint64_t>() > kCountMax)
    throw Wrong{std::string("\"") + name + "\" is out of range"};
  if (json.is_number_integer()) return Replicas::Count(json.get<int64_t>());
  if (json == "one") return Replicas::One();
  if (json == "all") return Replicas::All();
  if (json == "quorum") return Replicas::Quorum();
  throw Wrong{std::string("\"") + name + "\" is no number of replicas"};
}

Json KeyspaceJson(const KeyspaceInfo& keyspace) {
  return {{"id", keyspace.id},
          {"name", keyspace.name},
          {"n", keyspace.n},
          {"r", ReplicasJson(keyspace.r)},
          {"w", ReplicasJson(keyspace.w)},
          {"conflict", keyspace.conflict},
          {"ttl_ms", keyspace.ttl_ms},
          {"strict", keyspace.strict}};
}

KeyspaceInfo TakeKeyspace(const Json& json) {
  return {.id = Take<uint32_t>(json, "id"),
          .name = Take<std::string>(json, "name"),
          .n = Take<uint32_t>(json, "n"),
          .r = TakeReplicas(json, "r"),
          .w = TakeReplicas(json, "w"),
          .conflict = Take<std::string>(json, "conflict"),
          .ttl_ms = Take<uint64_t>(json, "ttl_ms"),
          .strict = Take<bool>(json, "strict")};
}

// "NAME ROWS BYTES".
Manifest::Chunk TakeChunk(const std::string& text) {
  const size_t rows = text.find(' ');
  const size_t bytes = text.find(' ', rows == text.npos ? rows : rows + 1);
  if (bytes == text.npos) throw Wrong{"a chunk is not its name, rows and bytes"};
  const std::string_view view(text);
  return {.name = text.substr(0, rows),
          .rows = Number<uint64_t>(view.substr(rows + 1, bytes - rows - 1), 10),
          .bytes = Number<uint64_t>(view.substr(bytes + 1), 10)};
}

Manifest TakeHead(const Json& json) {
  Manifest manifest = {.cluster_id = Number<uint64_t>(Take<std::string>(json, "cluster"), 16),
                       .made_at_ms = Take<uint64_t>(json, "made_at_ms"),
                       .chunk_rows = Take<uint32_t>(json, "chunk_rows"),
                       .keyspaces = {},
                       .nodes = {}};
  if (!IsChunkRows(manifest.chunk_rows)) throw Wrong{"\"chunk_rows\" is out of range"};
  for (const Json& keyspace : Take<std::vector<Json>>(json, "keyspaces")) {
    manifest.keyspaces.push_back(TakeKeyspace(keyspace));
  }
  return manifest;
}

void TakeNode(const Json& json, Manifest& manifest) {
  Manifest::Node node = {.id = Take<std::string>(json, "node"),
                         .stable_cut = Number<uint64_t>(Take<std::string>(json, "stable_cut"), 16),
                         .complete = {},
                         .runs = {}};
  for (const Json& range : Take<std::vector<Json>>(json, "complete")) {
    node.complete.push_back({.keyspace = Take<uint32_t>(range, "keyspace"),
                             .begin = Number<uint64_t>(Take<std::string>(range, "begin"), 16),
                             .end = Number<uint64_t>(Take<std::string>(range, "end"), 16)});
  }
  manifest.nodes.push_back(std::move(node));
}

absl::Status TakeRun(const Json& json, Manifest& manifest) {
  if (manifest.nodes.empty()) throw Wrong{"chunks come before a node"};
  Manifest::Run run = {.hints_for = Take<std::string>(json, "hints_for"), .chunks = {}};
  for (const std::string& text : Take<std::vector<std::string>>(json, "chunks")) {
    run.chunks.push_back(TakeChunk(text));
    if (!IsChunkName(run.chunks.back().name)) {
      return absl::FailedPreconditionError(
          "the manifest of the backup names \"" + run.chunks.back().name.substr(0, 200) +
          "\", which is not the name of a chunk (64 hexadecimal digits): nothing outside of the backup's "
          "directory is read");
    }
  }
  manifest.nodes.back().runs.push_back(std::move(run));
  return absl::OkStatus();
}

// Cuts the last line off, which holds the SHA-256 of the others.
absl::Status CheckHash(std::string_view& text) {
  if (!text.ends_with('\n')) return Damaged("its end is missing");
  const size_t last = text.substr(0, text.size() - 1).rfind('\n');
  if (last == text.npos) return Damaged("its end is missing");
  const std::string_view rest = text.substr(0, last + 1);
  if (text.substr(last + 1) != Json{{"sha256", Sha256Hex(rest)}}.dump() + "\n") {
    return Damaged("it fails its checksum");
  }
  text = rest;
  return absl::OkStatus();
}

}  // namespace

Totals TotalsOf(const Manifest& manifest) {
  Totals totals;
  std::set<std::string_view> names;
  for (const Manifest::Node& node : manifest.nodes) {
    for (const Manifest::Run& run : node.runs) {
      for (const Manifest::Chunk& chunk : run.chunks) {
        totals.rows += chunk.rows;
        if (!names.insert(chunk.name).second) continue;
        ++totals.files;
        totals.bytes += chunk.bytes;
      }
    }
  }
  return totals;
}

std::string EncodeManifest(const Manifest& manifest) {
  std::string text;
  const auto add = [&](const Json& line) { text += line.dump() + "\n"; };
  Json keyspaces = Json::array();
  for (const KeyspaceInfo& keyspace : manifest.keyspaces) keyspaces.push_back(KeyspaceJson(keyspace));
  add({{"format", kManifestFormat},
       {"cluster", Hex(manifest.cluster_id)},
       {"made_at_ms", manifest.made_at_ms},
       {"chunk_rows", manifest.chunk_rows},
       {"keyspaces", keyspaces}});
  for (const Manifest::Node& node : manifest.nodes) {
    Json complete = Json::array();
    for (const BackupRange& range : node.complete) {
      complete.push_back(
          {{"keyspace", range.keyspace}, {"begin", Hex(range.begin)}, {"end", Hex(range.end)}});
    }
    add({{"node", node.id}, {"stable_cut", Hex(node.stable_cut)}, {"complete", complete}});
    for (const Manifest::Run& run : node.runs) {
      Json chunks = Json::array();
      for (const Manifest::Chunk& chunk : run.chunks) {
        chunks.push_back(chunk.name + " " + std::to_string(chunk.rows) + " " + std::to_string(chunk.bytes));
      }
      add({{"hints_for", run.hints_for}, {"chunks", chunks}});
    }
  }
  add({{"sha256", Sha256Hex(text)}});
  return text;
}

absl::StatusOr<Manifest> DecodeManifest(std::string_view text) {
  if (absl::Status status = CheckHash(text); !status.ok()) return status;
  std::optional<Manifest> manifest;
  try {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const Json line = ParseObject(text.substr(0, end));
      text.remove_prefix(end + 1);
      if (!manifest) {
        if (const auto format = Take<uint64_t>(line, "format"); format != kManifestFormat) {
          return absl::UnimplementedError("the manifest of the backup has format " + std::to_string(format) +
                                          ", which a later version wrote; use that version");
        }
        manifest = TakeHead(line);
      } else if (line.contains("node")) {
        TakeNode(line, *manifest);
      } else if (absl::Status status = TakeRun(line, *manifest); !status.ok()) {
        return status;
      }
    }
  } catch (const Wrong& wrong) {
    return Damaged(wrong.what);
  }
  if (!manifest) return Damaged("it is empty");
  return *std::move(manifest);
}

std::string IdOfManifest(std::string_view text) { return Sha256Hex(text); }

}  // namespace gyre::backup
