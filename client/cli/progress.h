// A line on stderr that says how far a command is: only for a person who looks, and gone when it ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace gyre::cli {

class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { Clear(); }

  // Drawn when something else is done, and else at most ten times a second; not at all unless stderr is a
  // terminal. `total` 0: not known.
  void Show(const std::string& doing, uint64_t done, uint64_t total);
  // Makes room for what is printed now.
  void Clear();

 private:
  const bool terminal_;
  bool drawn_ = false;
  std::string doing_;
  std::chrono::steady_clock::time_point next_at_;
};

// "[=====>    ] 52%  doing" with `total`, else "doing 1234".
std::string ProgressText(const std::string& doing, uint64_t done, uint64_t total);

}  // namespace gyre::cli
