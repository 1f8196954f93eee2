// The program: global options, their environment, its commands, and the exit code.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "client/cli/completion.h"
#include "client/cli/man_page.h"
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
constexpr std::chrono::milliseconds kCompletionTimeout{2000};  // a person waits for it

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

// The tree of commands, over one session.
class Program {
 public:
  explicit Program(Session& session) : session_(session) {
    app_.footer(kFooter);
    app_.require_subcommand(1);
    app_.fallthrough();  // inherited: global options may follow the command
    endpoints_.option =
        app_.add_option("--endpoints", endpoints_.value, "HOST:PORT,... (default 127.0.0.1:7400)")
            ->check(NotEmpty());
    keyspace_.option = app_.add_option("-k,--keyspace", keyspace_.value, "keyspace (default \"default\")")
                           ->check(NotEmpty());
    output_.option = app_.add_option("-o,--output", output_.value, "text or json")->check(NotEmpty());
    timeout_.option =
        app_.add_option("--timeout", timeout_.value, "of each call: 500ms, 5s, 1m")->check(NotEmpty());
    ca_.option =
        app_.add_option("--ca", ca_.value, "file of the authorities that vouch for the nodes (PEM): TLS")
            ->check(NotEmpty());
    certificate_.option =
        app_.add_option("--cert", certificate_.value, "file of your certificate (PEM)")->check(NotEmpty());
    key_.option = app_.add_option("--key", key_.value, "file of its key (PEM)")->check(NotEmpty());
    // Before any command runs, and before an error is told: both depend on it.
    app_.parse_complete_callback([this] { TakeGlobals(); });
    AddKeyCommands(app_, session);
    AddBulkCommands(app_, session);
    AddBenchCommand(app_, session);
    AddClusterCommands(app_, session);
    AddKeyspaceCommands(app_, session);
    AddNodeCommands(app_, session);
    AddShellCommand(app_, session);
    AddCompletionCommand(app_, session);
    app_.add_subcommand("version", "print the version")->callback([&session] {
      if (session.json) return session.Print(Json{{"version", kVersion}});
      session.Print(std::string("gyre ") + kVersion);
    });
  }

  CLI::App& app() { return app_; }

  absl::Status Check(std::vector<std::string> words) {
    std::ranges::reverse(words);  // as the parser wants them
    app_.parse_complete_callback([this] {
      TakeGlobals();
      throw CLI::Success();  // before any command runs
    });
    try {
      app_.parse(words);
    } catch (const CLI::Success&) {
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(error.what());
    }
    return absl::OkStatus();
  }

  int Run(std::vector<std::string> words) {
    std::ranges::reverse(words);  // as the parser wants them
    try {
      app_.parse(words);
    } catch (const CLI::Success& help) {
      return app_.exit(help);
    } catch (const CLI::ParseError& error) {
      ReadEnvironment(output_);
      session_.json = output_.value == "json";
      session_.FailUsage(std::string(error.what()) + "; see gyre --help");
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      session_.Fail(kOtherFailure, "DATA_LOSS", "the output could not be written");
    }
    return session_.exit_code;
  }

 private:
  std::array<Global*, 7> Globals() {
    return {&endpoints_, &keyspace_, &output_, &timeout_, &ca_, &certificate_, &key_};
  }

  void TakeGlobals() {
    for (Global* global : Globals()) ReadEnvironment(*global);
    session_.json = output_.value == "json";
    session_.endpoints = SplitList(endpoints_.value);
    session_.keyspace = keyspace_.value;
    const auto parsed = ParseDuration(timeout_.value);
    if (!session_.json && output_.value != "text")
      throw CLI::ValidationError("--output", "must be text or json");
    if (!parsed || parsed->count() == 0)
      throw CLI::ValidationError("--timeout", "must be like 500ms, 5s or 1m");
    session_.timeout = *parsed;
    if (ca_.value.empty() != certificate_.value.empty() || ca_.value.empty() != key_.value.empty())
      throw CLI::ValidationError("--ca, --cert, --key", "TLS needs all three");
    if (!ca_.value.empty()) session_.tls = TlsFiles{ca_.value, certificate_.value, key_.value};
    session_.export_globals = [this] {
      for (const Global* global : Globals()) {
        setenv(global->environment, global->value.c_str(), 1);
      }
    };
  }

  Session& session_;
  CLI::App app_{"Gyre: a distributed key-value store.", "gyre"};
  Global endpoints_{nullptr, "GYRE_ENDPOINTS", "127.0.0.1:7400"};
  Global keyspace_{nullptr, "GYRE_KEYSPACE", "default"};
  Global output_{nullptr, "GYRE_OUTPUT", "text"};
  Global timeout_{nullptr, "GYRE_TIMEOUT", "5s"};
  Global ca_{nullptr, "GYRE_CA", ""};
  Global certificate_{nullptr, "GYRE_CERT", ""};
  Global key_{nullptr, "GYRE_KEY", ""};
};

// What the completion scripts call: candidates for the last word, one a line, each with its help behind a
// tab.
int PrintCandidates(const std::vector<std::string>& words) {
  for (const Candidate& one : CandidatesFor(words, nullptr)) {
    std::printf("%s%s%s\n", one.word.c_str(), one.help.empty() ? "" : "\t", one.help.c_str());
  }
  return kDone;
}

}  // namespace

std::vector<Candidate> CandidatesFor(const std::vector<std::string>& words, const Memory* memory) {
  Session session;
  Program program(session);
  const auto ask = [&words] {
    const auto given = [&words](const char* flag, const char* environment) {
      const std::string value = ValueIn(words, {flag});
      const char* const fallback = std::getenv(environment);
      return value.empty() && fallback != nullptr ? std::string(fallback) : value;
    };
    std::string endpoints = given("--endpoints", "GYRE_ENDPOINTS");
    if (endpoints.empty()) endpoints = "127.0.0.1:7400";
    std::optional<TlsFiles> tls;
    if (const std::string ca = given("--ca", "GYRE_CA"); !ca.empty())
      tls = TlsFiles{ca, given("--cert", "GYRE_CERT"), given("--key", "GYRE_KEY")};
    return AdminClient(SplitList(endpoints), kCompletionTimeout, std::move(tls)).ClusterStatus();
  };
  return Complete(
      program.app(), words,
      {.keyspaces =
           [&ask] {
             std::vector<std::string> names;
             if (const auto info = ask(); info.ok()) {
               for (const KeyspaceInfo& keyspace : info->keyspaces) names.push_back(keyspace.name);
             }
             return names;
           },
       .nodes =
           [&ask] {
             std::vector<std::string> ids;
             if (const auto info = ask(); info.ok()) {
               for (const NodeStatus& node : info->nodes) ids.push_back(node.id);
             }
             return ids;
           },
       .keys = [memory] { return memory == nullptr ? std::vector<std::string>() : memory->keys(); }});
}

void AddCompletionCommand(CLI::App& app, Session& session) {
  CLI::App* completion = app.add_subcommand("completion", "print the script with which a shell completes");
  const auto shell = std::make_shared<std::string>();
  completion->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([&session, shell] { session.PrintBytes(CompletionScript(*shell)); });
}

absl::Status Check(const std::vector<std::string>& words) {
  Session session;
  return Program(session).Check(words);
}

int Run(const std::vector<std::string>& words, Memory* memory) {
  Session session;
  session.memory = memory;
  return Program(session).Run(words);
}

int Run(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "__complete")
    return PrintCandidates({words.begin() + 1, words.end()});
  if (words == std::vector<std::string>{"__man"}) {  // for the build
    Session session;
    std::fputs(ManPage(Program(session).app()).c_str(), stdout);
    return kDone;
  }
  return Run(words, nullptr);
}

}  // namespace gyre::cli
