// The command line `gyre`.
#include <absl/synchronization/mutex.h>
#include <csignal>
#include <grpc/support/log.h>

#include "client/cli/session.h"

// jemalloc's settings, read by it at start: large pages, for page faults are dear on virtual machines.
extern "C" const char* malloc_conf;
const char* malloc_conf = "thp:always,narenas:4";

int main(int argc, char** argv) {
  gpr_set_log_function([](gpr_log_func_args*) {});  // errors are told once, by the command
  // Abseil looks for deadlocks at every lock in builds with asserts; ours keep these, but the search is for
  // tests.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the output, with its exit code
  return gyre::cli::Run(argc, argv);
}
