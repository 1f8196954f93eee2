// Takes connections at an address and hands them to a gRPC server, no more than so many at a time.
//
// gRPC 1.51 has no limit of its own, and one that it meets is worse: when the process has no descriptor left,
// its listener stops for good. So the node listens itself. gRPC does not say when a connection ends; but a
// socket that is gone is seen by its number, which then is closed or belongs to another inode.
#pragma once

#include <absl/status/statusor.h>
#include <atomic>
#include <cstdint>
#include <grpcpp/grpcpp.h>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gyre {

class Acceptor {
 public:
  using Handler = std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>;

  // Listens at HOST:PORT, on every address of a host name; takes nothing before Start. UNAVAILABLE naming the
  // address that cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::string& address, size_t connections_max,
                                                          std::atomic<uint64_t>& refused);
  ~Acceptor() { Stop(); }

  // REQUIRES: the server of `handler` was started, and is shut down only after Stop.
  void Start(Handler handler);
  // Idempotent.
  void Stop();

 private:
  struct Connection {
    int fd = -1;
    uint64_t device = 0;
    uint64_t inode = 0;
  };
  Acceptor(size_t connections_max, std::atomic<uint64_t>& refused)
      : connections_max_(connections_max), refused_(refused) {}
  void Run();
  void Take(int listener);
  bool HasRoom();

  const size_t connections_max_;
  std::atomic<uint64_t>& refused_;
  std::vector<int> listeners_;
  int wake_ = -1;  // readable: end
  Handler handler_;
  std::vector<Connection> open_;  // some may have ended since
  std::chrono::steady_clock::time_point look_after_;
  std::thread thread_;
};

}  // namespace gyre
