// Walks the tree of commands along the words of a line.
#include "client/cli/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

namespace gyre::cli {
namespace {

enum class Kind : uint8_t { kKeyspaces, kNodes, kKeys, kReplicas, kOutputs };

// What stands for a value of the option of this name, or as the argument of this name in the command.
struct Values {
  std::string_view name;
  std::string_view command;  // "": any
  Kind kind;
};
constexpr Values kValues[] = {
    {"--keyspace", "", Kind::kKeyspaces},
    {"NAME", "set", Kind::kKeyspaces},
    {"NAME", "drop", Kind::kKeyspaces},
    {"--node", "", Kind::kNodes},
    {"ID", "", Kind::kNodes},
    {"--add", "", Kind::kNodes},
    {"--remove", "", Kind::kNodes},
    {"KEY", "", Kind::kKeys},
    {"-w", "", Kind::kReplicas},
    {"-r", "", Kind::kReplicas},
    {"--w", "", Kind::kReplicas},
    {"--r", "", Kind::kReplicas},
    {"--output", "", Kind::kOutputs},
};

std::vector<std::string> WordsOf(Kind kind, const CompletionSource& source) {
  const auto ask = [](const std::function<std::vector<std::string>()>& from) {
    return from ? from() : std::vector<std::string>();
  };
  switch (kind) {
    case Kind::kKeyspaces:
      return ask(source.keyspaces);
    case Kind::kNodes:
      return ask(source.nodes);
    case Kind::kKeys:
      return ask(source.keys);
    case Kind::kReplicas:
      return {"one", "quorum", "all"};
    case Kind::kOutputs:
      return {"text", "json"};
  }
  return {};
}

// The names of an option as they are written: "-k", "--keyspace".
std::vector<std::string> NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  if (option.get_positional()) names.push_back(option.get_name(true));
  return names;
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// An option of a command, or of one that it is part of.
const CLI::Option* Find(const CLI::App* app, const std::string& name) {
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      const std::vector<std::string> names = NamesOf(*option);
      if (std::ranges::find(names, name) != names.end()) return option;
    }
  }
  return nullptr;
}

// The choices that an option checks for, which its type says as {a,b,c}.
std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  if (begin == type.npos || end == type.npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

void AddValues(const CLI::App& app, const CLI::Option& option, const CompletionSource& source,
               std::vector<Candidate>& candidates) {
  for (std::string& choice : ChoicesOf(option)) candidates.push_back({std::move(choice), ""});
  for (const std::string& name : NamesOf(option)) {
    for (const Values& values : kValues) {
      if (values.name != name || (!values.command.empty() && values.command != app.get_name())) continue;
      for (std::string& word : WordsOf(values.kind, source)) candidates.push_back({std::move(word), ""});
    }
  }
}

void AddOptions(const CLI::App* app, std::vector<Candidate>& candidates) {
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : NamesOf(*option)) {
        if (name.starts_with('-')) candidates.push_back({name, option->get_description()});
      }
    }
  }
}

constexpr char kBash[] = R"(# Completion of gyre for bash: source <(gyre completion bash)
_gyre() {
  local IFS=$'\n'
  # shellcheck disable=SC2207
  COMPREPLY=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
}
complete -o default -F _gyre gyre
)";

constexpr char kZsh[] = R"(#compdef gyre
# Completion of gyre for zsh: source <(gyre completion zsh), or as _gyre in a folder of $fpath
_gyre() {
  local line
  local -a found
  "${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null | while IFS= read -r line; do
    line=${line//:/\\:}
    found+=("${line/$'\t'/:}")
  done
  if (( $#found )); then _describe gyre found; else _files; fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _gyre "$@"; else compdef _gyre gyre; fi
)";

constexpr char kFish[] = R"(# Completion of gyre for fish: gyre completion fish | source
function __gyre_complete
  set -l words (commandline --tokenize --cut-at-cursor --current-process)
  set -l current (commandline --cut-at-cursor --current-token)
  $words[1] __complete $words[2..-1] "$current" 2>/dev/null
end
complete --command gyre --arguments '(__gyre_complete)'
)";

}  // namespace

std::vector<Candidate> Complete(const CLI::App& root, const std::vector<std::string>& words,
                                const CompletionSource& source) {
  const CLI::App* app = &root;
  const CLI::Option* awaits_value = nullptr;
  size_t positionals = 0;
  bool only_arguments = false;  // after --
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (awaits_value != nullptr) {
      awaits_value = nullptr;
    } else if (word == "--") {
      only_arguments = true;
    } else if (!only_arguments && word.size() > 1 && word.starts_with('-')) {
      const CLI::Option* option = Find(app, word);
      if (option != nullptr && TakesValue(*option)) awaits_value = option;
    } else {
      const auto commands =
          app->get_subcommands([&](const CLI::App* command) { return command->get_name() == word; });
      if (positionals == 0 && !only_arguments && !commands.empty()) {
        app = commands.front();
      } else {
        ++positionals;
      }
    }
  }

  const std::string current = words.empty() ? "" : words.back();
  std::vector<Candidate> candidates;
  if (awaits_value != nullptr) {
    AddValues(*app, *awaits_value, source, candidates);
  } else if (!only_arguments && current.starts_with('-')) {
    AddOptions(app, candidates);
  } else {
    if (positionals == 0 && !only_arguments) {
      for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; })) {
        candidates.push_back({command->get_name(), command->get_description()});
      }
    }
    for (const CLI::Option* option : app->get_options()) {
      if (!option->get_positional()) continue;
      if (positionals-- == 0) {
        AddValues(*app, *option, source, candidates);
        break;
      }
    }
  }
  std::erase_if(candidates, [&](const Candidate& one) { return !one.word.starts_with(current); });
  std::ranges::sort(candidates, {}, &Candidate::word);
  const auto twice = std::ranges::unique(candidates, {}, &Candidate::word);
  candidates.erase(twice.begin(), twice.end());
  return candidates;
}

std::string ValueIn(const std::vector<std::string>& words, const std::vector<std::string>& names) {
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (std::ranges::find(names, words[i]) != names.end()) return words[i + 1];
  }
  return "";
}

std::string CompletionScript(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  if (shell == "fish") return kFish;
  return "";
}

}  // namespace gyre::cli
