// gyred's settings: what they are, and how they are read from files, environment and command line.
//
// Precedence: flag > environment > file > default. A setting is named `section.name`; in a file it stands in
// its [section], in the environment it is GYRE_SECTION_NAME, as a flag --section.name=VALUE. The table in
// settings_table.cc is the one list of them: parsing, --help and --print-config all come from it.
#pragma once

#include <absl/status/statusor.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/engine.h"

namespace gyre {

// What --version prints and what a node tells its peers; the version in CMakeLists.txt.
inline constexpr std::string_view kGyredVersion = "0.1.0";

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };
enum class LogFormat : uint8_t { kText, kJson };

// All settings, checked. Addresses are HOST:PORT, an IPv6 host in brackets. Defaults and limits:
// settings_table.cc.
struct Config {
  struct {
    std::string data_dir;
    std::string zone;
    uint32_t weight = 0;
  } node;
  struct {
    std::string client;
    std::string peer;
    std::string http;
    std::string advertise_client;  // where others reach listen.client; never a wildcard
    std::string advertise_peer;
  } listen;
  struct {
    std::vector<std::string> seeds;  // peer addresses
    int bootstrap_expect = 0;
    bool auto_join = false;
  } cluster;
  struct {
    Durability durability = Durability::kDisk;
  } storage;
  struct {
    size_t value_bytes = 0;
    size_t siblings = 0;
    size_t record_bytes = 0;  // at least a value and 64 KiB
    size_t requests_in_flight = 0;
    uint64_t hint_bytes = 0;
    uint64_t disk_reserve_bytes = 0;
    size_t connections = 0;    // of each port
    size_t network_bytes = 0;  // of each port
    std::chrono::milliseconds clock_drift{0};
  } limits;
  struct {
    std::string ca;  // files; all three, or none
    std::string certificate;
    std::string key;
    std::vector<std::string> permissions;
    bool allow_insecure = false;
    bool on() const { return !ca.empty(); }
  } security;
  struct {
    LogLevel level = LogLevel::kInfo;
    LogFormat format = LogFormat::kText;
  } log;
};

// What one command line asks for.
struct Invocation {
  enum class Action : uint8_t { kServe, kPrint, kPrintIdentity };
  Action action = Action::kServe;
  Config config;     // for kServe and kPrintIdentity
  std::string text;  // for kPrint: goes to stdout as it is, then exit 0
};

// Reads a command line (without the program's name) and an environment of NAME=VALUE. Reads the files of
// --config (given several times, the later file wins, setting by setting) and opens nothing else. Errors are
// INVALID_ARGUMENT, a sentence that names the setting and where it stands (for a file, FILE:LINE).
absl::StatusOr<Invocation> ReadConfig(std::span<const std::string> arguments,
                                      std::span<const std::string> environment);

// HOST and PORT of a HOST:PORT; the brackets of an IPv6 host are gone.
struct HostPort {
  std::string host;
  int port = 0;
};
// INVALID_ARGUMENT when `address` is anything else: an empty host, a port that is not 1 to 65535.
absl::StatusOr<HostPort> ParseHostPort(std::string_view address);

}  // namespace gyre
