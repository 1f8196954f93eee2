// Finds nodes by address.
#include "client/cli/node_name.h"

namespace gyre::cli {

absl::StatusOr<std::string> IdOfAddress(const ClusterInfo& info, const std::string& name) {
  if (!IsAddress(name)) return name;
  std::string found;
  for (const NodeStatus& node : info.nodes) {
    if (node.address != name) continue;
    if (!found.empty()) {
      return absl::InvalidArgumentError("several nodes have been at " + name + ", among them " + found +
                                        " and " + node.id + ": name the node by its id");
    }
    found = node.id;
  }
  if (found.empty())
    return absl::InvalidArgumentError("there is no node at " + name + ": see gyre cluster status");
  return found;
}

}  // namespace gyre::cli
