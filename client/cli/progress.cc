// Draws how far a command is.
#include "client/cli/progress.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>
#include <utility>

namespace gyre::cli {
namespace {

constexpr uint64_t kBarCharacters = 30;
constexpr std::chrono::milliseconds kBetween{100};
constexpr char kErase[] = "\r\x1b[K";  // to the end of the line

}  // namespace

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressLine::Show(const std::string& doing, uint64_t done, uint64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || (now < next_at_ && doing == doing_)) return;
  next_at_ = now + kBetween;
  doing_ = doing;
  drawn_ = true;
  std::fprintf(stderr, "%s%s", kErase, ProgressText(doing, done, total).c_str());
}

void ProgressLine::Clear() {
  if (std::exchange(drawn_, false)) std::fputs(kErase, stderr);
}

std::string ProgressText(const std::string& doing, uint64_t done, uint64_t total) {
  if (total == 0) return doing + " " + std::to_string(done);
  const uint64_t part = std::min(done, total);
  const uint64_t full = part * kBarCharacters / total;
  std::string bar(full, '=');
  if (full < kBarCharacters) bar += '>';
  bar.resize(kBarCharacters, ' ');
  return "[" + bar + "] " + std::to_string(part * 100 / total) + "%  " + doing;
}

}  // namespace gyre::cli
