// gyred: reads its settings, serves until it is told to stop, ends cleanly; begins anew when its store is
// damaged.
#include <absl/synchronization/mutex.h>
#include <cstdio>
#include <signal.h>
#include <string>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <vector>

#include "server/config.h"
#include "server/gyred.h"
#include "server/identity.h"
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
  if (invocation->action == gyre::Invocation::Action::kPrintIdentity) {
    const absl::StatusOr<gyre::Identity> identity = gyre::OpenIdentity(invocation->config.node.data_dir);
    if (!identity.ok()) {
      std::fprintf(stderr, "gyred: %s\n", std::string(identity.status().message()).c_str());
      return 1;
    }
    std::printf("%s\n", gyre::ToString(identity->node()).c_str());
    return 0;
  }
  // Abseil looks for deadlocks at every lock in builds with asserts; ours keep these, but the search is for
  // tests.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  gyre::SetUpLog(invocation->config.log.level, invocation->config.log.format);

  // A connection is a descriptor, and so is a table of the store.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }

  // Blocked before any thread starts, so that only the loop below sees them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  const auto go_on = [&signals] {
    sigset_t pending;
    sigpending(&pending);
    return !sigismember(&pending, SIGTERM) && !sigismember(&pending, SIGINT);
  };
  gyre::StoreDamage damage;
  for (;;) {
    absl::StatusOr<std::unique_ptr<gyre::Gyred>> node = gyre::Gyred::Start(invocation->config, damage, go_on);
    if (absl::IsCancelled(node.status())) return 0;
    if (!node.ok()) {
      std::fprintf(stderr, "gyred: %s\n", std::string(node.status().message()).c_str());
      return 1;
    }
    sd_notify(0, "READY=1\nSTATUS=serving");  // does nothing where no systemd asked to be told
    const timespec look_every = {.tv_sec = 0, .tv_nsec = 500'000'000};
    bool told_to_end = false;
    while (!told_to_end && (*node)->end().ok() && !(*node)->WantsNewStart()) {
      told_to_end = sigtimedwait(&signals, nullptr, &look_every) > 0;
    }
    sd_notify(0, told_to_end ? "STOPPING=1" : "STATUS=rebuilding a damaged store");
    (*node)->Drain();
    if (const absl::Status end = (*node)->end(); !end.ok()) {
      std::fprintf(stderr, "gyred: %s\n", std::string(end.message()).c_str());
      return 1;
    }
    if (told_to_end) return 0;
  }
}
