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

// What failed for want of replicas says how many answered.
int TooFew(const std::string& endpoint) {
  auto client = gyre::Client::Connect({.endpoints = {endpoint}, .timeout = std::chrono::seconds(2)});
  if (!client.ok()) return 1;
  const absl::Status put = client->Put("k", "v", {.w = gyre::Replicas::All()}).status();
  const absl::Status get = client->Get("k", {.r = gyre::Replicas::All()}).status();
  for (const absl::Status& status : {put, get}) {
    const auto acknowledgements = gyre::AcknowledgementsOf(status);
    if (!acknowledgements) return std::fprintf(stderr, "%s\n", status.ToString().c_str()), 1;
    std::printf("%u of %u\n", acknowledgements->got, acknowledgements->needed);
  }
  return 0;
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
  if (example == "too_few") return TooFew(endpoint);
  return 2;
}
