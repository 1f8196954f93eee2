// The command line `gyre`.
#include <csignal>
#include <grpc/support/log.h>

#include "client/cli/session.h"

int main(int argc, char** argv) {
  gpr_set_log_function([](gpr_log_func_args*) {});  // errors are told once, by the command
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the output, with its exit code
  return gyre::cli::Run(argc, argv);
}
