// A shopping cart that loses nothing: two devices add to it at once, and their siblings are merged by union.
#include <cstdio>
#include <gyre/client.h>
#include <gyre/resolvers.h>
#include <set>
#include <string>

namespace {

using Cart = std::set<std::string>;

// One item a line.
gyre::Codec<Cart> CartCodec() {
  return {.decode = [](std::string_view text) -> absl::StatusOr<Cart> {
            Cart cart;
            while (!text.empty()) {
              const size_t end = text.find('\n');
              if (end == text.npos) return absl::DataLossError("a cart does not end with a line's end");
              cart.emplace(text.substr(0, end));
              text.remove_prefix(end + 1);
            }
            return cart;
          },
          .encode =
              [](const Cart& cart) {
                std::string text;
                for (const std::string& item : cart) text += item + "\n";
                return text;
              }};
}

// What was in any sibling is in the cart, and `item` too. (As in the Dynamo paper an item that was removed on
// one device while another changed the cart may come back; an addition is never lost.)
gyre::Client::Resolver Add(const std::string& item) {
  return gyre::Typed<Cart>(CartCodec(), [item](std::vector<Cart> siblings) -> std::optional<Cart> {
    Cart cart = {item};
    for (const Cart& sibling : siblings) cart.insert(sibling.begin(), sibling.end());
    return cart;
  });
}

}  // namespace

int ShoppingCart(const std::string& endpoint) {
  const auto client = gyre::Client::Connect({.endpoints = {endpoint}});
  if (!client.ok()) return std::fprintf(stderr, "%s\n", client.status().ToString().c_str()), 1;
  gyre::Client store = *client;
  const std::string key = "cart:7";

  // A phone and a laptop have both read the empty cart, and neither sees what the other then puts into it.
  const auto empty = store.Get(key);
  if (!empty.ok()) return std::fprintf(stderr, "%s\n", empty.status().ToString().c_str()), 1;
  for (const char* item : {"milk\n", "bread\n"}) {
    const auto put = store.Put(key, item, {.context = empty->context});
    if (!put.ok()) return std::fprintf(stderr, "%s\n", put.status().ToString().c_str()), 1;
  }
  const auto both = store.Get(key);
  if (!both.ok()) return std::fprintf(stderr, "%s\n", both.status().ToString().c_str()), 1;
  std::printf("siblings: %zu\n", both->values.size());

  if (const absl::Status added = store.Update(key, Add("eggs")); !added.ok()) {
    // After an unknown outcome, look before you repeat: a union may simply be added to once more.
    return std::fprintf(stderr, "%s\n", added.ToString().c_str()), 1;
  }
  const auto cart = store.Get(key);
  if (!cart.ok() || !cart->found()) return 1;
  std::printf("siblings: %zu\n%s", cart->values.size(), cart->values[0].bytes.c_str());
  return 0;
}
