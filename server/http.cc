// Serves /metrics, /livez and /readyz with cpp-httplib, from a bounded pool of threads.
#include "server/http.h"

#include <chrono>
#include <future>
#include <httplib.h>
#include <semaphore>
#include <thread>
#include <utility>

#include "server/config.h"

namespace gyre {
namespace {

constexpr size_t kThreads = 8;
constexpr ptrdiff_t kConnectionsMax = 64;  // served or waiting for a thread; more wait in the kernel
constexpr std::chrono::seconds kPatience{2};
constexpr size_t kRequestBytesMax = 16 * 1024;
constexpr char kText[] = "text/plain; charset=utf-8";

// A pool that stops taking connections instead of letting them queue up without end.
class BoundedPool : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> serve) override {
    room_.acquire();
    pool_.enqueue([this, serve = std::move(serve)] {
      serve();
      room_.release();
    });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  std::counting_semaphore<kConnectionsMax> room_{kConnectionsMax};
  httplib::ThreadPool pool_{kThreads};
};

// httplib's own choice adds SO_REUSEPORT, with which a second node would share our port instead of failing.
void SetSocketOptions(socket_t socket) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

class Server : public HttpServer {
 public:
  explicit Server(Hooks hooks) : hooks_(std::move(hooks)) {
    server_.set_socket_options(SetSocketOptions);
    server_.set_keep_alive_max_count(16);
    server_.set_keep_alive_timeout(kPatience.count());
    server_.set_read_timeout(kPatience);
    server_.set_write_timeout(kPatience);
    server_.set_payload_max_length(kRequestBytesMax);
    server_.Get("/livez", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("ok\n", kText);
    });
    server_.Get("/readyz", [this](const httplib::Request&, httplib::Response& response) {
      const absl::Status ready = hooks_.ready();
      response.status = ready.ok() ? 200 : 503;
      response.set_content(ready.ok() ? "ok\n" : std::string(ready.message()) + "\n", kText);
    });
    server_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(hooks_.metrics(), "text/plain; version=0.0.4; charset=utf-8");
    });
  }

  ~Server() override {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Listen(const std::string& address) {
    const auto where = ParseHostPort(address);
    if (!where.ok()) return where.status();
    errno = 0;
    if (!server_.bind_to_port(where->host, where->port)) {
      return absl::UnavailableError("HTTP cannot be served at " + address + ": " +
                                    (errno != 0 ? std::strerror(errno) : "no such address here"));
    }
    // httplib ignores a stop() that comes before it runs; it makes its pool as soon as it does.
    std::promise<void> running;
    server_.new_task_queue = [&running] {
      running.set_value();
      return new BoundedPool();
    };
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    running.get_future().wait();
    return absl::OkStatus();
  }

 private:
  Hooks hooks_;
  httplib::Server server_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, Hooks hooks) {
  auto server = std::make_unique<Server>(std::move(hooks));
  if (auto status = server->Listen(address); !status.ok()) return status;
  return server;
}

}  // namespace gyre
