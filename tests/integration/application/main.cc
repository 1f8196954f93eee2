// Runs one of the SDK's examples against a cluster: application EXAMPLE ENDPOINT.
#include <cstdio>
#include <gyre/admin.h>
#include <gyre/client.h>
#include <gyre/version.h>
#include <string>

int FirstSteps(const std::string& endpoint);
int ShoppingCart(const std::string& endpoint);
int Pipeline(const std::string& endpoint, int keys);
int Sessions(const std::string& endpoint);

namespace {

int Members(const std::string& endpoint) {
  const auto info = gyre::AdminClient({endpoint}, std::chrono::seconds(5), {}).ClusterStatus();
  if (!info.ok()) return std::fprintf(stderr, "%s\n", info.status().ToString().c_str()), 1;
  std::printf("%zu members, client %s\n", info->nodes.size(), gyre::kVersion);
  return 0;
}

// The errors of the library are values that programs can tell apart.
int Refused() {
  const auto client = gyre::Client::Connect({});
  std::printf("%s\n", client.status().ToString().c_str());
  return absl::IsInvalidArgument(client.status()) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string example = argv[1];
  const std::string endpoint = argv[2];
  if (example == "first_steps") return FirstSteps(endpoint);
  if (example == "shopping_cart") return ShoppingCart(endpoint);
  if (example == "pipeline") return Pipeline(endpoint, 5000);
  if (example == "session_store") return Sessions(endpoint);
  if (example == "members") return Members(endpoint);
  if (example == "refused") return Refused();
  return 2;
}
