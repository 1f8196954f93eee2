// Writes the tree of commands as a manual page.
#include "client/cli/man_page.h"

#include <CLI/CLI.hpp>

#include "client/version.h"

namespace gyre::cli {
namespace {

// Text of a page: a backslash, a leading dot or quote, and a hyphen mean something to man.
std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) {
      escaped += std::string("\\&") + c;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

bool IsHelp(const CLI::Option& option) { return option.check_lname("help"); }

// "-k, --keyspace" or the argument's name; the name of the value where one is taken.
std::string NamesOf(const CLI::Option& option) {
  if (option.get_lnames().empty() && option.get_snames().empty()) return option.get_name(true);
  std::string names;
  const auto add = [&names](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  if (option.get_items_expected_max() > 0) names += " VALUE";
  return names;
}

void AddOptions(const CLI::App& app, std::string& page) {
  for (const CLI::Option* option : app.get_options()) {
    if (IsHelp(*option)) continue;
    page += ".TP\n\\fB" + Escape(NamesOf(*option)) + "\\fR\n" + Escape(option->get_description()) + "\n";
  }
}

void AddCommand(const CLI::App& app, const std::string& name, std::string& page) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string arguments;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string argument = option->get_name(true);
    arguments += option->get_required() ? " " + argument : " [" + argument + "]";
  }
  page += ".SS \"" + Escape(name + arguments) + "\"\n" + Escape(app.get_description()) + "\n";
  AddOptions(app, page);
  for (const CLI::App* command : commands) AddCommand(*command, name + " " + command->get_name(), page);
}

}  // namespace

std::string ManPage(const CLI::App& app) {
  std::string page = ".TH GYRE 1 \"\" \"gyre " + std::string(kVersion) + "\" \"Gyre\"\n";
  page += ".SH NAME\ngyre \\- command line of the Gyre key\\-value store\n";
  page += ".SH SYNOPSIS\n\\fBgyre\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR ...\n";
  page += ".SH DESCRIPTION\n" + Escape(app.get_description()) + "\n.SH OPTIONS\n";
  AddOptions(app, page);
  page += ".SH COMMANDS\n";
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    AddCommand(*command, command->get_name(), page);
  }
  return page + ".SH \"EXIT CODES AND ENVIRONMENT\"\n.nf\n" + Escape(app.get_footer()) +
         "\n.fi\n.SH \"SEE ALSO\"\ngyred(8)\n";
}

}  // namespace gyre::cli
