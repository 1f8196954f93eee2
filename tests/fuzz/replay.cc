// A fuzz target without a fuzzer: runs it on every file of its corpus, and on mutations that are the same
// each time.
//
// Usage: fuzz_TARGET CORPUS MUTATIONS_PER_FILE, or fuzz_TARGET FILE... to run it on these alone.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace gyre::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kInputBytesMax = 64 * 1024;
constexpr char kLast[] = "crash-input";  // in the working directory

std::string running;  // what a crash leaves in kLast

void KeepInput(int signal) {
  std::ofstream(kLast, std::ios::binary) << running;
  std::fprintf(stderr, "the input of %zu bytes that ended this is in %s\n", running.size(), kLast);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void RunOn(std::string bytes) {
  running = std::move(bytes);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(running.data()), running.size());
}

std::string Read(const fs::path& file) {
  std::ostringstream content;
  content << std::ifstream(file, std::ios::binary).rdbuf();
  return content.str();
}

// One step away from `bytes`.
void Mutate(std::string& bytes, const std::string& other, sim::Random& random) {
  constexpr uint8_t kEdges[] = {0, 1, 0x7f, 0x80, 0xff};
  const size_t at = random.Below(bytes.size() + 1);
  const size_t count = std::min<size_t>(bytes.size() - at, 1 + random.Below(16));
  switch (random.Below(7)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
      break;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(kEdges[random.Below(std::size(kEdges))]);
      break;
    case 2:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] + (random.Chance(.5) ? 1 : -1));
      break;
    case 3:
      bytes.insert(at, 1, static_cast<char>(random.Next()));
      break;
    case 4:
      bytes.erase(at, count);
      break;
    case 5:
      bytes.insert(at, bytes.substr(at, count));
      break;
    case 6:
      bytes = bytes.substr(0, at) + other.substr(random.Below(other.size() + 1));
      break;
  }
  bytes.resize(std::min(bytes.size(), kInputBytesMax));
}

int Replay(const fs::path& corpus, size_t mutations) {
  std::map<std::string, std::string> files;  // by name
  for (const auto& entry : fs::directory_iterator(corpus)) files[entry.path().filename()] = Read(entry);
  if (files.empty()) {
    std::fprintf(stderr, "%s holds no input\n", corpus.c_str());
    return 1;
  }
  std::vector<std::string> inputs;
  for (const auto& [name, bytes] : files) inputs.push_back(bytes);
  RunOn("");
  sim::Random random(1);
  for (const std::string& input : inputs) {
    RunOn(input);
    for (size_t i = 0; i < mutations; ++i) {
      std::string bytes = input;
      for (uint64_t steps = 1 + random.Below(4); steps > 0; --steps) {
        Mutate(bytes, inputs[random.Below(inputs.size())], random);
      }
      RunOn(std::move(bytes));
    }
  }
  std::printf("%zu inputs, %zu mutations of each\n", inputs.size(), mutations);
  return 0;
}

}  // namespace
}  // namespace gyre::fuzz

int main(int argc, char** argv) {
  using namespace gyre::fuzz;
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) std::signal(signal, KeepInput);
  if (argc == 3 && fs::is_directory(argv[1])) return Replay(argv[1], std::strtoul(argv[2], nullptr, 10));
  for (int i = 1; i < argc; ++i) RunOn(Read(argv[i]));
  return argc > 1 ? 0 : 2;
}
