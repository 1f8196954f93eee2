// The rules of the tree, held by a test: who may include whom, what is banned where, and what every file and
// folder has.
//
// Quotes include ours, angle brackets include not ours. A failure reads
//   storage/bad.cc:1: storage/ must not include server/core/node.h
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iostream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

// What files below `folder` may include: of ours, what starts so; of others, the standard library and what
// starts so.
struct Floor {
  std::string_view folder;
  std::vector<std::string_view> ours;
  std::vector<std::string_view> others;
};

// The first match decides, so longer folders come first. Files below none of them (tests) may include
// anything.
const Floor kFloors[] = {
    {"ring/", {"ring/"}, {"absl/hash/", "absl/status/", "xxhash.h"}},
    {"storage/causal/", {"storage/causal/"}, {"absl/container/"}},
    {"storage/format/",
     {"storage/format/", "storage/causal/"},
     {"absl/status/", "xxhash.h", "openssl/sha.h"}},
    {"storage/rocks_", {"storage/"}, {"absl/", "rocksdb/"}},
    {"storage/", {"storage/"}, {"absl/"}},
    {"server/core/",
     {"server/core/", "ring/", "storage/causal/", "storage/format/"},
     {"absl/container/", "absl/status/", "absl/hash/"}},
    {"server/lane/", {"server/lane/", "server/core/", "ring/", "storage/"}, {"absl/", "pthread.h"}},
    {"proto/tls/", {"proto/tls/"}, {"absl/status/", "openssl/"}},
    {"server/security/",
     {"server/security/", "proto/tls/", "ring/"},
     {"absl/status/", "absl/synchronization/", "absl/time/", "spdlog/"}},
    {"server/rpc/",
     {"server/rpc/", "server/security/", "server/lane/", "server/core/", "ring/", "storage/causal/",
      "storage/format/", "proto/"},
     {"absl/", "grpc/", "grpcpp/", "google/protobuf/", "spdlog/", "netdb.h", "netinet/", "poll.h", "sys/",
      "unistd.h"}},
    {"server/",
     {"server/", "ring/", "storage/", "proto/"},
     {"absl/", "grpc/", "grpcpp/", "google/protobuf/", "spdlog/", "toml++/", "prometheus/", "nlohmann/",
      "httplib.h", "systemd/", "sys/", "fcntl.h", "signal.h", "unistd.h"}},
    {"client/examples/", {}, {"absl/", "gyre/"}},
    {"client/mocks/", {"client/"}, {"absl/", "gmock/"}},
    {"client/backup/",
     {"client/", "storage/causal/", "storage/format/"},
     {"absl/", "nlohmann/", "sys/", "dirent.h", "fcntl.h", "unistd.h"}},
    {"client/cli/",
     {"client/", "ring/", "proto/"},
     {"absl/", "grpc/", "grpcpp/", "google/protobuf/", "CLI/", "nlohmann/", "editline/", "sys/", "fcntl.h",
      "signal.h", "unistd.h"}},
    {"client/", {"client/", "ring/", "proto/"}, {"absl/", "grpc/", "grpcpp/", "google/protobuf/"}},
};

// What the code of files below `folder` must not say.
struct Ban {
  std::string_view folder;
  std::regex pattern;
  std::string_view instead;
};

const std::regex kImpure(
    "_clock::now|absl::Now|clock_gettime|gettimeofday|random_device|getrandom|std::rand\\b|"
    "std::(jthread|thread|mutex|shared_mutex|condition_variable|atomic)\\b|absl::Mutex|<grpc|<rocksdb");

const Ban kBans[] = {
    {"server/core/", kImpure, "the arguments of Step and Tick, and the outbox"},
    {"ring/", kImpure, "arguments"},
    {"storage/causal/", kImpure, "arguments"},
    {"storage/format/", kImpure, "arguments"},
    // g++ 12 destroys a temporary twice that is an argument inside a co_await expression.
    {"server/", std::regex("\\bco_(await|return|yield)\\b"), "a stepped machine or a callback"},
    {"", std::regex("\\bsleep_(for|until)\\b"), "a deadline"},
};

const std::string_view kTopLevel[] = {".ci",
                                      ".clang-format",
                                      ".git",
                                      ".gitignore",
                                      "ARCHITECTURE.md",
                                      "CHANGELOG.md",
                                      "CMakeLists.txt",
                                      "CMakePresets.json",
                                      "CONTRIBUTING.md",
                                      "LICENSE",
                                      "README.md",
                                      "client",
                                      "deploy",
                                      "proto",
                                      "ring",
                                      "server",
                                      "storage",
                                      "tests"};

const std::string_view kFoldersWithReadme[] = {"client",          "deploy",      "proto",       "ring",
                                               "server",          "server/core", "server/lane", "server/rpc",
                                               "server/security", "storage",     "tests"};

constexpr size_t kLinesLook = 400;  // worth a look: does it have one job?
constexpr size_t kLinesMax = 800;

struct Source {
  std::string path;  // from the root of the tree
  std::string text;
};

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool StartsWithAny(std::string_view text, const std::vector<std::string_view>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view p) { return text.starts_with(p); });
}

const Floor* FloorOf(std::string_view path) {
  for (const Floor& floor : kFloors) {
    if (path.starts_with(floor.folder)) return &floor;
  }
  return nullptr;
}

std::string At(const Source& source, size_t line) {
  return source.path + ":" + std::to_string(line + 1) + ": ";
}

std::vector<std::string> CheckIncludes(const Source& source) {
  static const std::regex include("\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"].*");
  std::vector<std::string> wrong;
  const Floor* const floor = FloorOf(source.path);
  if (floor == nullptr) return wrong;
  const std::vector<std::string> lines = LinesOf(source.text);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (!std::regex_match(lines[i], match, include)) continue;
    const std::string what = match[2];
    const bool ours = match[1] == "\"";
    const bool standard = !ours && what.find_first_of("./") == std::string::npos;
    if (standard || StartsWithAny(what, ours ? floor->ours : floor->others)) continue;
    wrong.push_back(At(source, i) + std::string(floor->folder) + " must not include " + what);
  }
  return wrong;
}

// What the SDK's users include must not drag gRPC or the protocol into their build.
std::vector<std::string> CheckPublicHeader(const Source& source) {
  static const std::regex dragged("\\s*#\\s*include\\s*[<\"](grpc|google/|proto/).*");
  std::vector<std::string> wrong;
  const bool internal = source.text.find("Internal to the SDK") != std::string::npos;
  if (fs::path(source.path).parent_path() != "client" || !source.path.ends_with(".h") || internal)
    return wrong;
  const std::vector<std::string> lines = LinesOf(source.text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!std::regex_match(lines[i], dragged)) continue;
    wrong.push_back(At(source, i) + "a header for the SDK's users must not include gRPC or the protocol");
  }
  return wrong;
}

std::vector<std::string> CheckBans(const Source& source) {
  std::vector<std::string> wrong;
  if (source.path == "tests/tidy_test.cc") return wrong;  // names what it bans
  const std::vector<std::string> lines = LinesOf(source.text);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string code = lines[i].substr(0, lines[i].find("//"));
    for (const Ban& ban : kBans) {
      std::smatch match;
      if (!source.path.starts_with(ban.folder) || !std::regex_search(code, match, ban.pattern)) continue;
      const std::string where = ban.folder.empty() ? "no file" : std::string(ban.folder);
      wrong.push_back(At(source, i) + where + (ban.folder.empty() ? " may" : " must not") + " say " +
                      match.str() + "; use " + std::string(ban.instead));
    }
  }
  return wrong;
}

std::vector<std::string> CheckFirstLine(const Source& source) {
  static const std::regex job("// \\S.{9,}");
  const std::vector<std::string> lines = LinesOf(source.text);
  if (!lines.empty() && std::regex_match(lines[0], job)) return {};
  return {At(source, 0) + "the first line must be a comment that says the file's one job"};
}

std::vector<std::string> CheckLength(const Source& source) {
  const size_t lines = LinesOf(source.text).size();
  if (lines <= kLinesMax) return {};
  return {At(source, kLinesMax) + "a file must not be longer than " + std::to_string(kLinesMax) + " lines"};
}

fs::path Root() { return GYRE_SOURCE_DIR; }

// What a build or a run leaves behind, as .gitignore lists it.
bool IsIgnored(const fs::path& path) {
  const std::string name = path.filename();
  return name.starts_with("build") || name == ".local" || name == "__pycache__" || name.ends_with(".pyc");
}

std::vector<Source> AllSources() {
  std::vector<Source> sources;
  for (auto it = fs::recursive_directory_iterator(Root()); it != fs::recursive_directory_iterator(); ++it) {
    if (it->is_directory() && (IsIgnored(it->path()) || it->path().filename() == ".git")) {
      it.disable_recursion_pending();
    }
    const std::string extension = it->path().extension();
    if (!it->is_regular_file() || (extension != ".h" && extension != ".cc" && extension != ".proto"))
      continue;
    std::ostringstream text;
    text << std::ifstream(it->path()).rdbuf();
    sources.push_back({fs::relative(it->path(), Root()), text.str()});
  }
  std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) { return a.path < b.path; });
  return sources;
}

class TidyTest : public testing::Test {
 protected:
  using Check = std::vector<std::string> (*)(const Source&);
  static void HoldsForAll(Check check) {
    const std::vector<Source> sources = AllSources();
    EXPECT_GT(sources.size(), 10u) << "the tree was not found at " << Root();
    for (const Source& source : sources) {
      for (const std::string& wrong : check(source)) ADD_FAILURE() << wrong;
    }
  }
};

TEST_F(TidyTest, FoldersIncludeOnlyWhatTheyMay) { HoldsForAll(CheckIncludes); }
TEST_F(TidyTest, PublicHeadersOfTheClientAreLight) { HoldsForAll(CheckPublicHeader); }
TEST_F(TidyTest, NothingBannedIsSaid) { HoldsForAll(CheckBans); }
TEST_F(TidyTest, EveryFileSaysItsJobFirst) { HoldsForAll(CheckFirstLine); }
TEST_F(TidyTest, NoFileAteTheProject) {
  HoldsForAll(CheckLength);
  for (const Source& source : AllSources()) {
    const size_t lines = LinesOf(source.text).size();
    if (lines > kLinesLook) std::cout << "worth a look: " << source.path << " has " << lines << " lines\n";
  }
}

TEST_F(TidyTest, EveryFolderSaysWhatItIs) {
  for (const std::string_view folder : kFoldersWithReadme) {
    EXPECT_TRUE(fs::exists(Root() / folder / "README.md")) << folder << "/README.md is missing";
  }
}

TEST_F(TidyTest, TheRootHoldsNothingElse) {
  for (const auto& entry : fs::directory_iterator(Root())) {
    const std::string name = entry.path().filename();
    const bool known = std::find(std::begin(kTopLevel), std::end(kTopLevel), name) != std::end(kTopLevel);
    EXPECT_TRUE(known || IsIgnored(entry.path()))
        << name << ": is not an entry of the root that kTopLevel knows";
  }
}

// The checks themselves: each finds what it is for, and says it as promised.
TEST_F(TidyTest, ChecksFindWhatTheyAreFor) {
  EXPECT_THAT(CheckIncludes({"storage/bad.cc", "#include \"server/core/node.h\"\n"}),
              ElementsAre("storage/bad.cc:1: storage/ must not include server/core/node.h"));
  EXPECT_THAT(CheckIncludes({"storage/store.cc", "#include <vector>\n#include <rocksdb/db.h>\n"}),
              ElementsAre("storage/store.cc:2: storage/ must not include rocksdb/db.h"));
  EXPECT_THAT(CheckIncludes({"storage/rocks_engine.cc", "#include <rocksdb/db.h>\n"}), IsEmpty());
  EXPECT_THAT(CheckIncludes({"server/core/node.cc", "#include \"storage/store.h\"\n"}),
              ElementsAre("server/core/node.cc:1: server/core/ must not include storage/store.h"));
  EXPECT_THAT(CheckIncludes({"client/client.cc", "#include \"server/core/node.h\"\n"}),
              ElementsAre("client/client.cc:1: client/ must not include server/core/node.h"));
  EXPECT_THAT(
      CheckPublicHeader({"client/client.h", "// The Client.\n#include <grpcpp/grpcpp.h>\n"}),
      ElementsAre("client/client.h:2: a header for the SDK's users must not include gRPC or the protocol"));
  EXPECT_THAT(CheckPublicHeader({"client/peer.h", "// Internal to the SDK.\n#include <grpcpp/grpcpp.h>\n"}),
              IsEmpty());
  EXPECT_THAT(
      CheckBans({"server/core/node.cc", "// no\nauto now = std::chrono::steady_clock::now();\n"}),
      ElementsAre(
          "server/core/node.cc:2: server/core/ must not say _clock::now; use the arguments of Step and "
          "Tick, and the outbox"));
  EXPECT_THAT(CheckBans({"server/core/node.cc", "// not even std::mutex\n"}), IsEmpty());
  EXPECT_THAT(CheckBans({"tests/a_test.cc", "  std::this_thread::sleep_for(1s);\n"}),
              ElementsAre("tests/a_test.cc:1: no file may say sleep_for; use a deadline"));
  EXPECT_THAT(CheckFirstLine({"ring/a.h", "#pragma once\n"}),
              ElementsAre("ring/a.h:1: the first line must be a comment that says the file's one job"));
  EXPECT_THAT(CheckLength({"ring/a.h", std::string(801, '\n')}),
              ElementsAre("ring/a.h:801: a file must not be longer than 800 lines"));
  EXPECT_THAT(CheckLength({"ring/a.h", std::string(800, '\n')}), IsEmpty());
}

}  // namespace
