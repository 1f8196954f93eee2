// What may stand next on a command line: for the shells' completion scripts, and for `gyre shell`.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gyre::cli {

struct Candidate {
  std::string word;
  std::string help;  // one line; may be empty
};

// What only a cluster, or the shell, knows. Each may be empty, and is asked only when its words are wanted.
struct CompletionSource {
  std::function<std::vector<std::string>()> keyspaces;
  std::function<std::vector<std::string>()> nodes;
  std::function<std::vector<std::string>()> keys;
};

// What begins with the last of `words` (which may be empty) and may stand there: commands, options, or the
// values of one. `words` are what follows the program's name. Nothing when any text may stand there.
std::vector<Candidate> Complete(const CLI::App& app, const std::vector<std::string>& words,
                                const CompletionSource& source);

// The value that an option of the whole program is given in `words`, such as --endpoints; else "".
std::string ValueIn(const std::vector<std::string>& words, const std::vector<std::string>& names);

// The script that teaches a shell to complete; "" for a shell that is not known.
std::string CompletionScript(const std::string& shell);

}  // namespace gyre::cli
