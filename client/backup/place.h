// Where an interrupted restore goes on: a small file beside the manifest.
#pragma once

#include <absl/status/statusor.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gyre::backup {

struct Place {
  std::string manifest;  // IdOfManifest
  bool overwrite = false;
  std::string restore;  // 16 bytes, drawn once for all attempts: the ids of its puts are made of them
  std::string row_key;  // of the last row before which all is done, itself included; empty: none
  uint64_t keys = 0;    // up to there
  uint64_t written = 0;
  uint64_t kept = 0;
  bool operator==(const Place&) const = default;
};

std::string PlaceName(uint64_t cluster_id);  // of the file
std::string EncodePlace(const Place& place);
// nullopt when it is damaged.
std::optional<Place> DecodePlace(std::string_view text);

}  // namespace gyre::backup
