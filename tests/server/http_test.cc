// The HTTP side answers what it promises, refuses a port that is taken, and stops.
#include "server/http.h"

#include <atomic>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gyre {
namespace {

// A port of the loopback that nothing listens on.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

std::string Answer(const httplib::Result& result) {
  return result ? std::to_string(result->status) + " " + result->body : "nothing";
}

TEST(HttpTest, ServesUntilItIsDestroyed) {
  std::atomic<bool> ready = false;
  const HttpServer::Hooks hooks = {
      .metrics = [] { return std::string("gyre_hints 5\n"); },
      .ready =
          [&] {
            return ready ? absl::OkStatus() : absl::UnavailableError("the cluster has not formed yet");
          }};
  const int port = FreePort();
  const std::string address = "127.0.0.1:" + std::to_string(port);
  auto server = HttpServer::Start(address, hooks);
  ASSERT_TRUE(server.ok()) << server.status();

  httplib::Client client("127.0.0.1", port);
  EXPECT_EQ(Answer(client.Get("/livez")), "200 ok\n");
  EXPECT_EQ(Answer(client.Get("/readyz")), "503 the cluster has not formed yet\n");
  ready = true;
  EXPECT_EQ(Answer(client.Get("/readyz")), "200 ok\n");
  EXPECT_EQ(Answer(client.Get("/metrics")), "200 gyre_hints 5\n");
  EXPECT_EQ(client.Get("/nothing")->status, 404);

  const auto second = HttpServer::Start(address, hooks);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(second.status().message()),
            "HTTP cannot be served at " + address + ": Address already in use");
  server->reset();
  EXPECT_EQ(Answer(client.Get("/livez")), "nothing");
}

TEST(HttpTest, StoppingRightAfterStartingEnds) {
  const HttpServer::Hooks hooks = {.metrics = [] { return std::string(); },
                                   .ready = [] { return absl::OkStatus(); }};
  const std::string address = "127.0.0.1:" + std::to_string(FreePort());
  for (int i = 0; i < 50; ++i) {
    const auto server = HttpServer::Start(address, hooks);
    ASSERT_TRUE(server.ok()) << i << ": " << server.status();
  }
}

TEST(HttpTest, AnAddressThatIsNoneIsRefused) {
  EXPECT_EQ(HttpServer::Start("here", {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gyre
