// What every command is given: the global options, and where its results and errors go.
#pragma once

#include <absl/status/status.h>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/admin.h"
#include "client/cli/completion.h"
#include "client/cli/exit_code.h"
#include "client/cli/memory.h"
#include "client/client.h"

namespace CLI {
class App;
}

namespace gyre::cli {

using Json = nlohmann::ordered_json;
using Table = std::vector<std::vector<std::string>>;  // rows of as many cells

// Settings are complete before a command runs. `exit_code` is what the program ends with.
struct Session {
  std::vector<std::string> endpoints;
  std::string keyspace;
  std::chrono::milliseconds timeout{5000};
  std::optional<TlsFiles> tls;
  bool json = false;
  int exit_code = kDone;
  Memory* memory = nullptr;              // of the shell that runs the command; null: none does
  std::function<void()> export_globals;  // puts the global options into the environment, for further commands

  // Connects to nothing yet. Ends the program's command with an error when the options are wrong.
  absl::StatusOr<Client> Connect() const;
  AdminClient Admin() const { return AdminClient(endpoints, timeout, tls); }
  // Asks that node alone.
  AdminClient AdminOf(const std::string& address) const { return AdminClient({address}, timeout, tls); }

  // One document, or one line of many, on stdout.
  void Print(const Json& document) const;
  void Print(const std::string& line) const;
  // With columns as wide as their widest cell. REQUIRES: not empty.
  void Print(const Table& rows) const;
  // The bytes as they are; a newline only where a person reads.
  void PrintBytes(const std::string& bytes) const;

  // Says the error on stderr and sets the exit code.
  void Fail(const absl::Status& status, Effect effect);
  void Fail(ExitCode code, const std::string& name, const std::string& message);
  void FailUsage(const std::string& message) { Fail(kUsage, "INVALID_ARGUMENT", message); }
};

// One per group of commands. `session` outlives `app`.
void AddKeyCommands(CLI::App& app, Session& session);
void AddBulkCommands(CLI::App& app, Session& session);
void AddBenchCommand(CLI::App& app, Session& session);
void AddClusterCommands(CLI::App& app, Session& session);
void AddPlanCommands(CLI::App& cluster, Session& session);  // of `gyre cluster`
void AddMovesCommand(CLI::App& cluster, Session& session);
void AddCanRestartCommand(CLI::App& cluster, Session& session);
void AddBackupCommands(CLI::App& cluster, Session& session);
void AddKeyspaceCommands(CLI::App& app, Session& session);
void AddNodeCommands(CLI::App& app, Session& session);
void AddShellCommand(CLI::App& app, Session& session);
void AddCompletionCommand(CLI::App& app, Session& session);

// What may stand as the last of `words`, after the program's name. `memory` may be null.
std::vector<Candidate> CandidatesFor(const std::vector<std::string>& words, const Memory* memory);

// OK if Run would carry `words` out, or print help; else INVALID_ARGUMENT with what is wrong. Carries nothing
// out.
absl::Status Check(const std::vector<std::string>& words);

// Parses and runs one command; returns the exit code. `words` are what follows the program's name.
int Run(const std::vector<std::string>& words, Memory* memory);
int Run(int argc, char** argv);

}  // namespace gyre::cli
