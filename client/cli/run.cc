// The program: global options, their environment, and the exit code.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "client/cli/options.h"
#include "client/cli/session.h"
#include "client/cli/text.h"
#include "client/version.h"

namespace gyre::cli {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 done, 1 other failure, 2 usage, 3 key not found, 4 siblings where one value was asked "
    "for,\n"
    "5 unavailable and certainly without effect, 6 outcome unknown, 7 TLS, authentication, permission.\n"
    "Environment: GYRE_ENDPOINTS, GYRE_KEYSPACE, GYRE_OUTPUT, GYRE_TIMEOUT, GYRE_CA, GYRE_CERT, GYRE_KEY. A "
    "flag is\nstronger.";

struct Global {
  CLI::Option* option;
  const char* environment;
  std::string value;
};

void ReadEnvironment(Global& global) {
  if (global.option->count() > 0) return;
  if (const char* value = std::getenv(global.environment); value != nullptr && *value != '\0')
    global.value = value;
}

}  // namespace

int Run(int argc, char** argv) {
  Session session;
  CLI::App app("Gyre: a distributed key-value store.", "gyre");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();  // inherited: global options may follow the command
  Global endpoints{nullptr, "GYRE_ENDPOINTS", "127.0.0.1:7400"};
  Global keyspace{nullptr, "GYRE_KEYSPACE", "default"};
  Global output{nullptr, "GYRE_OUTPUT", "text"};
  Global timeout{nullptr, "GYRE_TIMEOUT", "5s"};
  endpoints.option = app.add_option("--endpoints", endpoints.value, "HOST:PORT,... (default 127.0.0.1:7400)")
                         ->check(NotEmpty());
  keyspace.option =
      app.add_option("-k,--keyspace", keyspace.value, "keyspace (default \"default\")")->check(NotEmpty());
  output.option = app.add_option("-o,--output", output.value, "text or json")->check(NotEmpty());
  timeout.option =
      app.add_option("--timeout", timeout.value, "of each call: 500ms, 5s, 1m")->check(NotEmpty());
  Global ca{nullptr, "GYRE_CA", ""};
  Global certificate{nullptr, "GYRE_CERT", ""};
  Global key{nullptr, "GYRE_KEY", ""};
  ca.option = app.add_option("--ca", ca.value, "file of the authorities that vouch for the nodes (PEM): TLS")
                  ->check(NotEmpty());
  certificate.option =
      app.add_option("--cert", certificate.value, "file of your certificate (PEM)")->check(NotEmpty());
  key.option = app.add_option("--key", key.value, "file of its key (PEM)")->check(NotEmpty());
  // Before any command runs, and before an error is told: both depend on it.
  app.parse_complete_callback([&] {
    for (Global* global : {&endpoints, &keyspace, &output, &timeout, &ca, &certificate, &key})
      ReadEnvironment(*global);
    session.json = output.value == "json";
    session.endpoints = SplitList(endpoints.value);
    session.keyspace = keyspace.value;
    const auto parsed = ParseDuration(timeout.value);
    if (!session.json && output.value != "text")
      throw CLI::ValidationError("--output", "must be text or json");
    if (!parsed || parsed->count() == 0)
      throw CLI::ValidationError("--timeout", "must be like 500ms, 5s or 1m");
    session.timeout = *parsed;
    if (ca.value.empty() != certificate.value.empty() || ca.value.empty() != key.value.empty())
      throw CLI::ValidationError("--ca, --cert, --key", "TLS needs all three");
    if (!ca.value.empty()) session.tls = TlsFiles{ca.value, certificate.value, key.value};
  });
  AddKeyCommands(app, session);
  AddBulkCommands(app, session);
  AddBenchCommand(app, session);
  AddClusterCommands(app, session);
  AddKeyspaceCommands(app, session);
  AddNodeCommands(app, session);
  app.add_subcommand("version", "print the version")->callback([&] {
    if (session.json) return session.Print(Json{{"version", kVersion}});
    session.Print(std::string("gyre ") + kVersion);
  });

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    ReadEnvironment(output);
    session.json = output.value == "json";
    session.FailUsage(std::string(error.what()) + "; see gyre --help");
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    session.Fail(kOtherFailure, "DATA_LOSS", "the output could not be written");
  }
  return session.exit_code;
}

}  // namespace gyre::cli
