// Where an interrupted restore goes on, as JSON.
#include "client/backup/place.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "storage/format/sha256.h"

namespace gyre::backup {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

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
    const Json json = Json::parse(text.substr(0, end));
    json.at("manifest").get_to(place.manifest);
    json.at("overwrite").get_to(place.overwrite);
    json.at("keys").get_to(place.keys);
    json.at("written").get_to(place.written);
    json.at("kept").get_to(place.kept);
    if (!FromHexDigits(json.at("restore").get<std::string>(), place.restore) ||
        !FromHexDigits(json.at("row_key").get<std::string>(), place.row_key)) {
      return std::nullopt;
    }
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  return place;
}

}  // namespace gyre::backup
