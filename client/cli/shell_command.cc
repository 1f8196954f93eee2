// shell: commands one after another, with history, completion, and the causal context of each key remembered.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <editline/readline.h>
#include <fcntl.h>
#include <iostream>
#include <unistd.h>

#include "client/cli/memory.h"
#include "client/cli/session.h"
#include "client/cli/text.h"

namespace gyre::cli {
namespace {

constexpr int kHistoryLines = 1000;
constexpr char kHelp[] =
    "Any command of gyre, without its name: put KEY VALUE, get KEY, scan, cluster status, ...\n"
    "  use KEYSPACE   the keyspace of the commands that follow\n"
    "  help           this; COMMAND --help describes one\n"
    "  exit           ends the shell, as the end of its input does\n"
    "A put or delete of a key that was read or written here carries the context of that, so it replaces what "
    "was seen\n"
    "and no more; --context gives another.\n";

// libedit's way of completing has no place for an argument.
Memory* completing = nullptr;

// The words before and at the cursor, as far as they can be told while a line is not complete.
std::vector<std::string> WordsBefore(const std::string& line, size_t cursor) {
  const std::string before = line.substr(0, cursor);
  std::vector<std::string> words = SplitWords(before).value_or(std::vector<std::string>{});
  if (before.empty() || before.back() == ' ') words.emplace_back();
  return words;
}

char** CompleteLine(const char* text, int /*start*/, int end) {
  rl_attempted_completion_over = 1;  // no file names
  std::vector<std::string> words = WordsBefore(rl_line_buffer, static_cast<size_t>(end));
  if (words.empty()) words.emplace_back(text);
  std::vector<std::string> found;
  for (const Candidate& one : CandidatesFor(words, completing)) found.push_back(one.word);
  if (words.size() == 1) {
    for (const char* own : {"use", "help", "exit"}) {
      if (std::string_view(own).starts_with(words[0])) found.emplace_back(own);
    }
  }
  if (words.size() == 2 && words[0] == "use") {
    found.clear();
    for (const Candidate& one : CandidatesFor({"-k", words[1]}, completing)) found.push_back(one.word);
  }
  if (found.empty()) return nullptr;
  // As readline's: what all share first, then each, then the end; the caller frees all of it.
  std::string shared = found.front();
  for (const std::string& word : found) {
    size_t same = 0;
    while (same < shared.size() && same < word.size() && shared[same] == word[same]) ++same;
    shared.resize(same);
  }
  auto** const matches = static_cast<char**>(std::calloc(found.size() + 2, sizeof(char*)));
  if (matches == nullptr) return nullptr;
  matches[0] = strdup(shared.c_str());
  for (size_t i = 0; i < found.size(); ++i) matches[i + 1] = strdup(found[i].c_str());
  return matches;
}

// Lines of a person: edited, and kept for the next time.
class Editor {
 public:
  explicit Editor(Memory& memory) {
    completing = &memory;
    rl_readline_name = const_cast<char*>("gyre");
    rl_attempted_completion_function = CompleteLine;
    rl_completer_word_break_characters = const_cast<char*>(" ");
    using_history();
    stifle_history(kHistoryLines);
    const char* const home = std::getenv("HOME");
    if (home == nullptr) return;
    path_ = std::string(home) + "/.gyre_history";
    // Only for its owner: it holds keys and values.
    const int file = open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) {
      path_.clear();
      return;
    }
    close(file);
    read_history(path_.c_str());
  }
  ~Editor() {
    if (!path_.empty()) write_history(path_.c_str());
    completing = nullptr;
  }
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  std::optional<std::string> Read(const std::string& prompt) {
    char* const line = readline(prompt.c_str());
    if (line == nullptr) return std::nullopt;
    if (*line != '\0') add_history(line);
    std::string text = line;
    std::free(line);
    return text;
  }

 private:
  std::string path_;
};

void Shell(Session& session) {
  session.export_globals();  // the commands find the shell's options in their environment
  Memory memory;
  std::optional<Editor> editor;
  if (isatty(STDIN_FILENO) == 1) editor.emplace(memory);
  std::string keyspace = session.keyspace;
  for (;;) {
    std::optional<std::string> line;
    if (editor) {
      line = editor->Read("gyre:" + keyspace + "> ");
      if (!line) session.Print(std::string());  // the prompt's line ends here
    } else if (std::string text; std::getline(std::cin, text)) {
      line = std::move(text);
    }
    if (!line) return;
    const auto words = SplitWords(*line);
    if (!words.ok()) {
      session.FailUsage(std::string(words.status().message()));
      continue;
    }
    if (words->empty() || words->front().starts_with('#')) continue;
    const std::string& command = words->front();
    if (command == "exit" || command == "quit") return;
    if (command == "help") {
      session.PrintBytes(kHelp);
      session.exit_code = kDone;
    } else if (command == "shell") {
      session.FailUsage("this is the shell already");
    } else if (command == "use" && words->size() == 2) {
      keyspace = (*words)[1];
      setenv("GYRE_KEYSPACE", keyspace.c_str(), 1);
      session.exit_code = kDone;
    } else {
      session.exit_code = Run(*words, &memory);
    }
  }
}

}  // namespace

void AddShellCommand(CLI::App& app, Session& session) {
  app.add_subcommand("shell",
                     "take commands from a person or from stdin, one a line; the exit code is the last one's")
      ->callback([&session] { Shell(session); });
}

}  // namespace gyre::cli
