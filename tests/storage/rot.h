// What rots on a disk: bytes of a store's files.
#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <string>

namespace gyre {

// The largest file of `directory` whose name ends so; empty when there is none.
inline std::filesystem::path Largest(const std::filesystem::path& directory, const std::string& extension) {
  std::filesystem::path largest;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != extension) continue;
    if (largest.empty() || entry.file_size() > std::filesystem::file_size(largest)) largest = entry.path();
  }
  return largest;
}

// The same twice: as before.
inline void FlipByte(const std::filesystem::path& path, uintmax_t offset, int bits = 0x40) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  ASSERT_TRUE(file.good()) << path;
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ bits);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

inline std::string ContentOf(const std::filesystem::path& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

inline void Overwrite(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

// All files below `directory`, by their paths.
inline std::map<std::string, std::string> FilesOf(const std::filesystem::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) files[entry.path()] = ContentOf(entry.path());
  }
  return files;
}

}  // namespace gyre
