// Where an interrupted restore goes on, as JSON.
#include "client/backup/place.h"

#include <cstdio>

#include "client/backup/json.h"
#include "storage/format/sha256.h"

namespace gyre::backup {
std::string PlaceName(uint64_t cluster_id) {
  char name[40];
  std::snprintf(name, sizeof name, "restore-%016lx.json", static_cast<unsigned long>(cluster_id));
  return name;
}

std::string EncodePlace(const Place& place) {
  const Json json = {{"manifest", place.manifest},
                     {"overwrite", place.overwrite},
                     {"restore", ToHexDigits(place.restore)},
                     {"row_key", ToHexDigits(place.row_key)},
                     {"keys", place.keys},
                     {"written", place.written},
                     {"kept", place.kept}};
  const std::string text = json.dump() + "\n";
  return text + Sha256Hex(text) + "\n";
}

std::optional<Place> DecodePlace(std::string_view text) {
  const size_t end = text.find('\n');
  if (end == text.npos || text.substr(end + 1) != Sha256Hex(text.substr(0, end + 1)) + "\n")
    return std::nullopt;
  Place place;
  try {
    const Json json = ParseObject(text.substr(0, end));
    place = {.manifest = Take<std::string>(json, "manifest"),
             .overwrite = Take<bool>(json, "overwrite"),
             .restore = {},
             .row_key = {},
             .keys = Take<uint64_t>(json, "keys"),
             .written = Take<uint64_t>(json, "written"),
             .kept = Take<uint64_t>(json, "kept")};
    if (!FromHexDigits(Take<std::string>(json, "restore"), place.restore) ||
        !FromHexDigits(Take<std::string>(json, "row_key"), place.row_key)) {
      return std::nullopt;
    }
  } catch (const Wrong&) {
    return std::nullopt;
  }
  return place;
}

}  // namespace gyre::backup
