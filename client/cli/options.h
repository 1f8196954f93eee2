// What the options of several commands must be.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace gyre::cli {

// For options whose empty text would look like one that was not given: a script's unset variable must not
// quietly mean the default.
inline CLI::Validator NotEmpty() {
  return CLI::Validator(
      [](const std::string& text) { return text.empty() ? std::string("must not be empty") : std::string(); },
      "");
}

}  // namespace gyre::cli
