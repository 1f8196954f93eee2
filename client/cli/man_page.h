// The manual page gyre(1), made of the tree of commands.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace gyre::cli {

// In the format of man.
std::string ManPage(const CLI::App& app);

}  // namespace gyre::cli
