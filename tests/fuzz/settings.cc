// gyred's configuration file: what is taken and printed as the effective settings is taken again, and says
// the same.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

#include "server/config.h"
#include "tests/fuzz/fuzz.h"

namespace gyre {
namespace {

// A file in memory, written anew for each input.
int File() {
  static const int file = memfd_create("settings", 0);
  assert(file >= 0);
  return file;
}

// The lines of --print-config without their comments, which say where each value stands.
std::string WithoutComments(const std::string& text) {
  std::string bare;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    bare += line.substr(0, line.starts_with('[') ? line.npos : line.rfind("# ")) + "\n";
    begin = end + 1;
  }
  return bare;
}

std::optional<std::string> Normal(const std::string& content) {
  const auto size = static_cast<ssize_t>(content.size());
  const bool written = ftruncate(File(), 0) == 0 && pwrite(File(), content.data(), content.size(), 0) == size;
  assert(written);
  const std::string arguments[] = {"--config=/proc/self/fd/" + std::to_string(File()), "--print-config"};
  const absl::StatusOr<Invocation> read = ReadConfig(arguments, {});
  if (!read.ok()) {
    assert(absl::IsInvalidArgument(read.status()));
    return std::nullopt;
  }
  assert(read->config.limits.record_bytes > read->config.limits.value_bytes);
  assert(read->config.security.ca.empty() == read->config.security.key.empty());
  assert(ParseHostPort(read->config.listen.advertise_peer).ok());
  return WithoutComments(read->text);
}

}  // namespace
}  // namespace gyre

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  fuzz::Stable(fuzz::Text(data, size), Normal);
  return 0;
}
