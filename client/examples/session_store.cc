// A store of web sessions: each expires by itself, and lives on while it is used.
#include <chrono>
#include <cstdio>
#include <gyre/client.h>
#include <optional>
#include <string>
#include <utility>

namespace {

class SessionStore {
 public:
  SessionStore(gyre::Client client, std::chrono::milliseconds lifetime)
      : client_(std::move(client)), lifetime_(lifetime) {}

  absl::Status Begin(const std::string& id, std::string user) {
    return client_.Put("session:" + id, std::move(user), {.ttl = lifetime_}).status();
  }

  // Who it is, or nullopt when it has ended. Looking at a session makes it live anew.
  absl::StatusOr<std::optional<std::string>> Touch(const std::string& id) {
    std::optional<std::string> user;
    const absl::Status status =
        client_.Update("session:" + id,
                       [&user](const std::vector<std::string>& values) -> std::optional<std::string> {
                         // Two requests that touched it at once left siblings of one text.
                         if (!values.empty()) user = values.front();
                         return user;  // nothing there: nothing comes back to life
                       },
                       {.ttl = lifetime_});
    if (!status.ok()) return status;
    return user;
  }

  absl::Status End(const std::string& id) { return client_.Delete("session:" + id).status(); }

 private:
  gyre::Client client_;
  std::chrono::milliseconds lifetime_;
};

}  // namespace

int Sessions(const std::string& endpoint) {
  const auto client = gyre::Client::Connect({.endpoints = {endpoint}});
  if (!client.ok()) return std::fprintf(stderr, "%s\n", client.status().ToString().c_str()), 1;
  SessionStore sessions(*client, std::chrono::seconds(1));

  const auto show = [&sessions](const char* when) {
    const auto user = sessions.Touch("4711");
    if (!user.ok()) return std::fprintf(stderr, "%s\n", user.status().ToString().c_str()), false;
    std::printf("%s: %s\n", when, user->value_or("nobody").c_str());
    return true;
  };
  if (!sessions.Begin("4711", "ada").ok() || !show("begun")) return 1;

  // Only looking, and never touching, shows the moment at which it ends.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  gyre::Client store = *client;
  for (auto seen = store.Get("session:4711"); seen.ok() && seen->found(); seen = store.Get("session:4711")) {
    if (std::chrono::steady_clock::now() > give_up) return 1;
  }
  if (!show("unused for a second")) return 1;
  if (!sessions.Begin("4711", "grace").ok() || !sessions.End("4711").ok() || !show("logged out")) return 1;
  return 0;
}
