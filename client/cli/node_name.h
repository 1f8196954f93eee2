// How a node is named on the command line: by its id, the beginning of it, or its address.
#pragma once

#include <absl/status/statusor.h>
#include <string>

#include "client/admin.h"

namespace gyre::cli {

// The id of the node of that address, HOST:PORT; any other name is returned as it is, for the server to
// judge. INVALID_ARGUMENT when no node has the address, or several do.
absl::StatusOr<std::string> IdOfAddress(const ClusterInfo& info, const std::string& name);

// Whether a name is an address.
inline bool IsAddress(const std::string& name) { return name.find(':') != name.npos; }

}  // namespace gyre::cli
