// Listens, counts, and hands on.
#include "server/rpc/acceptor.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/lane/thread_name.h"

namespace gyre {
namespace {

constexpr int kBacklog = 1024;
constexpr int kPauseMs = 100;  // after a failure, and between two looks at which connections have ended

absl::Status CannotListen(const std::string& address, const std::string& why) {
  return absl::UnavailableError("cannot listen on " + address + ": " + why +
                                ". Is the port in use, or the address not of this machine? Change it or stop "
                                "the other process");
}

// HOST and PORT of an address that config has checked.
std::pair<std::string, std::string> Split(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, address.substr(colon + 1)};
}

// A listening socket, or -1 and errno.
int ListenAt(const addrinfo& where) {
  const int fd = socket(where.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // connections inherit it
  // "[::]" takes IPv4 as well.
  const int off = 0;
  if (where.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(fd, where.ai_addr, where.ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(const std::string& address, size_t connections_max,
                                                           std::atomic<uint64_t>& refused) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor(connections_max, refused));
  const auto [host, port] = Split(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return CannotListen(address, gai_strerror(error));
  }
  int error = 0;
  for (const addrinfo* where = found; where != nullptr && error != EADDRINUSE; where = where->ai_next) {
    const int fd = ListenAt(*where);
    if (fd >= 0) acceptor->listeners_.push_back(fd);
    if (fd < 0) error = errno;
  }
  freeaddrinfo(found);
  // A name may have an address of a family that this machine does not speak.
  if (acceptor->listeners_.empty() || error == EADDRINUSE) return CannotListen(address, std::strerror(error));
  acceptor->wake_ = eventfd(0, EFD_CLOEXEC);
  if (acceptor->wake_ < 0) return CannotListen(address, std::strerror(errno));
  return acceptor;
}

void Acceptor::Start(Handler handler) {
  handler_ = std::move(handler);
  thread_ = std::thread([this] { Run(); });
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
    thread_.join();
  }
  for (const int fd : std::exchange(listeners_, {})) close(fd);
  if (wake_ >= 0) close(std::exchange(wake_, -1));
}

void Acceptor::Run() {
  NameThisThread("accept");
  std::vector<pollfd> waiting = {{.fd = wake_, .events = POLLIN, .revents = 0}};
  for (const int fd : listeners_) waiting.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  while (poll(waiting.data(), waiting.size(), -1) >= 0 || errno == EINTR) {
    if (waiting[0].revents != 0) return;
    for (size_t i = 1; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) Take(waiting[i].fd);
    }
  }
}

void Acceptor::Take(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    // Without descriptors or memory it would fail again at once; the connection waits in the kernel.
    const bool passing = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    pollfd end = {.fd = wake_, .events = POLLIN, .revents = 0};
    if (!passing) poll(&end, 1, kPauseMs);
    return;
  }
  struct stat facts {};
  if (!HasRoom() || fstat(fd, &facts) != 0) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    close(fd);
    return;
  }
  open_.push_back({.fd = fd, .device = facts.st_dev, .inode = facts.st_ino});
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = listener;
  connection.fd = fd;
  handler_->HandleNewConnection(&connection);
}

// Forgets those that have ended when there seems to be no room.
bool Acceptor::HasRoom() {
  if (open_.size() < connections_max_) return true;
  const auto now = std::chrono::steady_clock::now();
  if (now < look_after_) return false;
  look_after_ = now + std::chrono::milliseconds(kPauseMs);
  std::erase_if(open_, [](const Connection& connection) {
    struct stat facts {};
    return fstat(connection.fd, &facts) != 0 || facts.st_dev != connection.device ||
           facts.st_ino != connection.inode;
  });
  return open_.size() < connections_max_;
}

}  // namespace gyre
