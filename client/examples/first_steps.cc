// First steps: write a key, read it back, change it without losing a concurrent change.
#include <cstdio>
#include <gyre/client.h>

int FirstSteps(const std::string& endpoint) {
  absl::StatusOr<gyre::Client> client = gyre::Client::Connect({.endpoints = {endpoint}});
  if (!client.ok()) return std::fprintf(stderr, "%s\n", client.status().ToString().c_str()), 1;

  if (const auto put = client->Put("cart", "milk"); !put.ok()) return 1;
  const absl::Status updated = client->Update("cart", [](const std::vector<std::string>& values) {
    std::string all = "bread";
    for (const std::string& value : values) all += "," + value;
    return all;
  });
  const absl::StatusOr<gyre::GetResult> cart = client->Get("cart");
  if (!updated.ok() || !cart.ok()) return 1;
  for (const gyre::Value& value : cart->values) std::printf("%s\n", value.bytes.c_str());
  return 0;
}
