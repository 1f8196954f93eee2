// Manifests of backups, and places of restores: what is taken is written and read again as the same, and
// names no file outside of the backup.
#include "client/backup/manifest.h"

#include <optional>

#include "client/backup/directory.h"
#include "client/backup/place.h"
#include "storage/format/backup_chunk.h"
#include "storage/format/sha256.h"
#include "tests/fuzz/fuzz.h"

namespace gyre::backup {
namespace {

// The text with its last line replaced by the hash that a manifest, or a place, must end with.
std::string WithHash(std::string_view text, bool of_manifest) {
  const size_t last = text.size() < 2 ? text.npos : text.rfind('\n', text.size() - 2);
  const std::string rest(text.substr(0, last == text.npos ? 0 : last + 1));
  const std::string hash = Sha256Hex(rest);
  return rest + (of_manifest ? "{\"sha256\":\"" + hash + "\"}\n" : hash + "\n");
}

std::optional<std::string> NormalManifest(const std::string& text) {
  const absl::StatusOr<Manifest> manifest = DecodeManifest(text);
  if (!manifest.ok()) return std::nullopt;
  assert(IsChunkRows(manifest->chunk_rows));
  for (const Manifest::Node& node : manifest->nodes) {
    for (const Manifest::Run& run : node.runs) {
      for (const Manifest::Chunk& chunk : run.chunks) assert(IsChunkName(chunk.name));
    }
  }
  assert(TotalsOf(*manifest).files <= text.size() / 2 / kSha256Bytes);
  return EncodeManifest(*manifest);
}

std::optional<std::string> NormalPlace(const std::string& text) {
  const std::optional<Place> place = DecodePlace(text);
  if (!place) return std::nullopt;
  assert(DecodePlace(EncodePlace(*place)) == place);
  return EncodePlace(*place);
}

}  // namespace
}  // namespace gyre::backup

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre::backup;
  const std::string_view text = gyre::fuzz::Text(data, size);
  DecodeManifest(text).IgnoreError();
  gyre::fuzz::Stable(WithHash(text, true), NormalManifest);
  gyre::fuzz::Stable(WithHash(text, false), NormalPlace);
  return 0;
}
