// Output and errors of commands.
#include "client/cli/session.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace gyre::cli {
namespace {

void Write(std::FILE* file, const std::string& bytes) { std::fwrite(bytes.data(), 1, bytes.size(), file); }

std::string Dump(const Json& document) {
  // What is no valid UTF-8 can only be in a message: everything else goes through AddBytes.
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::StatusOr<Client> Session::Connect() const {
  return Client::Connect({.endpoints = endpoints, .keyspace = keyspace, .timeout = timeout, .tls = tls});
}

void Session::Print(const Json& document) const { Write(stdout, Dump(document)); }

void Session::Print(const std::string& line) const { Write(stdout, line + "\n"); }

void Session::Print(const Table& rows) const {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - row[i].size() + 2, ' ');
    }
    Print(line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

void Session::PrintBytes(const std::string& bytes) const {
  Write(stdout, bytes);
  if (isatty(STDOUT_FILENO) == 1) Write(stdout, "\n");
}

void Session::Fail(const absl::Status& status, Effect effect) {
  Fail(ExitCodeOf(status, effect), CodeName(status.code()), std::string(status.message()));
}

void Session::Fail(ExitCode code, const std::string& name, const std::string& message) {
  exit_code = code;
  std::fflush(stdout);
  if (json) return Write(stderr, Dump({{"error", {{"code", name}, {"message", message}}}}));
  Write(stderr, "gyre: " + message + " (" + name + ")\n");
}

}  // namespace gyre::cli
