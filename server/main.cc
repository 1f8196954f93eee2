// gyred: reads its settings, serves until it is told to stop, ends cleanly.
#include <absl/synchronization/mutex.h>
#include <cstdio>
#include <signal.h>
#include <string>
#include <vector>

#include "server/config.h"
#include "server/gyred.h"
#include "server/log.h"

extern char** environ;

// jemalloc's settings, read by it at start: large pages, kept for a while. Page faults are dear on virtual
// machines.
extern "C" const char* malloc_conf;
const char* malloc_conf =
    "thp:always,metadata_thp:always,dirty_decay_ms:30000,muzzy_decay_ms:30000,narenas:4";

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  const absl::StatusOr<gyre::Invocation> invocation = gyre::ReadConfig(arguments, environment);
  if (!invocation.ok()) {
    std::fprintf(stderr, "gyred: %s\n", std::string(invocation.status().message()).c_str());
    return 2;
  }
  if (invocation->action == gyre::Invocation::Action::kPrint) {
    std::fputs(invocation->text.c_str(), stdout);
    return 0;
  }
  // Abseil looks for deadlocks at every lock in builds with asserts; ours keep these, but the search is for
  // tests.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  gyre::SetUpLog(invocation->config.log.level, invocation->config.log.format);

  // Blocked before any thread starts, so that only sigwait below sees them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  absl::StatusOr<std::unique_ptr<gyre::Gyred>> node = gyre::Gyred::Start(invocation->config);
  if (!node.ok()) {
    std::fprintf(stderr, "gyred: %s\n", std::string(node.status().message()).c_str());
    return 1;
  }
  int received = 0;
  sigwait(&signals, &received);
  (*node)->Drain();
  return 0;
}
