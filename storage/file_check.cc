// Looks at the files of a store before RocksDB does, and lays out what is left of a damaged one.
//
// A log of RocksDB is a row of blocks. A block holds fragments: a checksum (4 bytes, of what follows the
// length), a length (2), a kind (1), and that many bytes; what is left at its end, when it is too short for a
// header, is zero. A batch is one whole fragment, or a first one, some in the middle and a last one.
#include "storage/file_check.h"

#include <absl/functional/function_ref.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace gyre {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockBytes = 32 << 10;
constexpr size_t kHeaderBytes = 7;

enum Kind : uint8_t { kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

uint8_t At(std::string_view bytes, size_t place) { return static_cast<uint8_t>(bytes[place]); }

constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    table[i] = crc;
  }
  return table;
}

// CRC-32C, rotated and shifted as RocksDB stores it.
uint32_t MaskedCrc(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeCrcTable();
  uint32_t crc = ~0u;
  for (size_t i = 0; i < bytes.size(); ++i) crc = kTable[(crc ^ At(bytes, i)) & 0xff] ^ crc >> 8;
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

// The fragment at `place` of `block`, header included; empty when there cannot be one.
std::string_view FragmentAt(std::string_view block, size_t place) {
  if (block.size() - place < kHeaderBytes) return {};
  const size_t length = kHeaderBytes + At(block, place + 4) + 256u * At(block, place + 5);
  const uint8_t kind = At(block, place + 6);
  if (kind < kWhole || kind > kLast || length > block.size() - place) return {};
  return block.substr(place, length);
}

bool IsSound(std::string_view fragment) {
  if (fragment.size() <= kHeaderBytes) return false;
  uint32_t stored = 0;
  for (size_t i = 4; i-- > 0;) stored = stored << 8 | At(fragment, i);
  return MaskedCrc(fragment.substr(6)) == stored;
}

Kind KindOf(std::string_view fragment) { return static_cast<Kind>(At(fragment, 6)); }

// Whether a fragment is sound, and a batch begins with it.
bool BeginsBatch(std::string_view fragment) {
  return fragment.size() > kHeaderBytes && KindOf(fragment) <= kFirst && IsSound(fragment);
}

// Calls `visit` with each block of a log, and where it begins, until it returns false.
absl::Status ReadBlocks(const fs::path& path,
                        absl::FunctionRef<bool(std::string_view block, size_t begin)> visit) {
  std::ifstream file(path, std::ios::binary);
  std::string block;
  bool more = static_cast<bool>(file);
  for (size_t begin = 0; more; begin += kBlockBytes) {
    block.resize(kBlockBytes);
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    block.resize(static_cast<size_t>(file.gcount()));
    more = visit(block, begin) && block.size() == kBlockBytes;
  }
  if (file.is_open() && !file.bad()) return absl::OkStatus();
  return absl::UnavailableError("the log " + path.string() + " cannot be read");
}

// Reads one log from its beginning to where something speaks for damage, or to its end.
class LogCheck {
 public:
  bool damaged() const { return damaged_; }
  size_t broken_at() const { return broken_at_; }  // from where it cannot be followed

  // Returns false when there is no more to know.
  bool Block(std::string_view block, size_t begin) {
    size_t place = 0;
    while (block.size() - place >= kHeaderBytes) {
      const std::string_view fragment = FragmentAt(block, place);
      if (fragment.empty()) break;
      damaged_ = broken_ && BeginsBatch(fragment);
      if (damaged_) return false;
      place += fragment.size();
    }
    if (block.size() - place < kHeaderBytes || broken_) return true;
    // Here it cannot be followed. What begins behind was written later, and after this had been synced.
    broken_ = true;
    broken_at_ = begin + place;
    for (++place; !damaged_ && block.size() - place >= kHeaderBytes; ++place) {
      damaged_ = BeginsBatch(FragmentAt(block, place));
    }
    return !damaged_;
  }

 private:
  bool broken_ = false;
  size_t broken_at_ = 0;
  bool damaged_ = false;
};

absl::Status CheckLog(const fs::path& path) {
  LogCheck check;
  const absl::Status status =
      ReadBlocks(path, [&](std::string_view block, size_t begin) { return check.Block(block, begin); });
  if (!status.ok() || !check.damaged()) return status;
  return absl::DataLossError("the log " + path.string() + " is damaged at byte " +
                             std::to_string(check.broken_at()) +
                             ": there are whole batches behind, which must not be lost in silence");
}

// Writes a log.
class LogWriter {
 public:
  explicit LogWriter(std::ofstream& file) : file_(file) {}

  void Add(std::string_view batch) {
    bool first = true;
    do {
      if (left_ < kHeaderBytes) {
        file_ << std::string(left_, '\0');
        left_ = kBlockBytes;
      }
      const std::string_view part = batch.substr(0, left_ - kHeaderBytes);
      batch.remove_prefix(part.size());
      const Kind kind = batch.empty() ? (first ? kWhole : kLast) : (first ? kFirst : kMiddle);
      const std::string body = static_cast<char>(kind) + std::string(part);
      const uint32_t crc = MaskedCrc(body);
      for (int shift = 0; shift < 32; shift += 8) file_.put(static_cast<char>(crc >> shift));
      file_.put(static_cast<char>(part.size())).put(static_cast<char>(part.size() >> 8));
      file_ << body;
      left_ -= kHeaderBytes + part.size();
      first = false;
    } while (!batch.empty());
  }

 private:
  std::ofstream& file_;
  size_t left_ = kBlockBytes;  // of the block
};

// Copies the batches of a log that are whole, whatever lies between them.
absl::Status CopyBatches(const fs::path& from, const fs::path& to) {
  std::ofstream file(to, std::ios::binary | std::ios::trunc);
  LogWriter writer(file);
  std::string batch;  // as far as it was read
  bool begun = false;
  const auto take = [&](std::string_view fragment) {
    const Kind kind = KindOf(fragment);
    if (kind <= kFirst) batch.clear();
    begun = kind <= kFirst || begun;
    if (!begun) return;
    batch += fragment.substr(kHeaderBytes);
    if (kind != kWhole && kind != kLast) return;
    writer.Add(batch);
    begun = false;
  };
  const absl::Status status = ReadBlocks(from, [&](std::string_view block, size_t) {
    for (size_t place = 0; block.size() - place >= kHeaderBytes;) {
      const std::string_view fragment = FragmentAt(block, place);
      if (IsSound(fragment)) {
        take(fragment);
        place += fragment.size();
      } else {
        begun = false;
        ++place;
      }
    }
    return true;
  });
  if (!status.ok()) return status;
  if (file.flush()) return absl::OkStatus();
  return absl::UnavailableError("the log " + to.string() + " cannot be written");
}

}  // namespace

absl::Status CheckFiles(const std::string& path) {
  std::error_code error;
  fs::path written;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    const std::string extension = entry->path().extension();
    if (extension != ".log" && extension != ".sst") continue;
    written = entry->path();
    if (extension != ".log") continue;
    if (absl::Status status = CheckLog(written); !status.ok()) return status;
  }
  if (written.empty() || fs::exists(fs::path(path) / "CURRENT", error) || error) return absl::OkStatus();
  return absl::DataLossError("the store in " + path + " is damaged: there is " + written.filename().string() +
                             ", but the file CURRENT, which leads to the list of its tables, is missing");
}

absl::Status LinkDamaged(const std::string& path, const std::string& scratch) {
  const auto failed = [&](const std::error_code& error) {
    return absl::UnavailableError("what is left of the store in " + path + " cannot be laid out in " +
                                  scratch + ": " + error.message());
  };
  std::error_code error;
  fs::remove_all(scratch, error);
  if (!error) fs::create_directory(scratch, error);
  if (error) return failed(error);
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path to = fs::path(scratch) / entry->path().filename();
    if (!entry->is_regular_file(error)) continue;
    const std::string extension = entry->path().extension();
    if (extension == ".log") {
      if (absl::Status status = CopyBatches(entry->path(), to); !status.ok()) return status;
    } else if (extension == ".sst") {
      fs::create_hard_link(entry->path(), to, error);  // never written to again
      if (error) fs::copy_file(entry->path(), to, error);
    } else {
      fs::copy_file(entry->path(), to, error);
    }
    if (error) break;
  }
  return error ? failed(error) : absl::OkStatus();
}

}  // namespace gyre
