// The Client: reads and writes keys of a Gyre cluster.
//
//   absl::StatusOr<gyre::Client> client = gyre::Client::Connect({.endpoints = {"127.0.0.1:7400"}});
//   absl::StatusOr<gyre::PutResult> put = client->Put("cart", "milk");
//
// Threads:   every method may be called from any thread at any time. Callbacks run on the client's threads:
// they must
//            not block, and must not make a synchronous call; they may start asynchronous ones.
// Ownership: a Client is a handle; copies share one connection. When the last is destroyed, calls still
// outstanding
//            are answered with CANCELLED (a write that may have been sent: UNKNOWN), within two seconds.
// Errors:    absl::Status with the code of the protocol:
//              INVALID_ARGUMENT, NOT_FOUND (keyspace)   the request is wrong; nothing changed
//              UNAUTHENTICATED, PERMISSION_DENIED       certificates do not suffice; nothing changed
//              RESOURCE_EXHAUSTED                       a limit, here or at the server; nothing changed
//              UNAVAILABLE                              no node, or too few replicas, reached; certainly
//              without effect UNKNOWN, DEADLINE_EXCEEDED               for a write: OutcomeUnknown(status) is
//              true
//            A key that is not there is no error: GetResult::found() is false.
// Time:      a call is answered no later than a second after its timeout. Calls that are safe to repeat are
// retried
//            until then; a put is safe because it carries an id by which the servers know it again.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/types.h"

namespace gyre {
inline namespace sdk {

class Connection;

struct Options {
  // HOST:PORT of any nodes; the others are discovered. At least one.
  std::vector<std::string> endpoints;
  std::string keyspace = "default";                 // for calls that name none
  std::chrono::milliseconds timeout{5000};          // for calls that name none; at most an hour
  std::chrono::milliseconds connect_timeout{1000};  // for reaching one node, before the next is tried
  std::optional<TlsFiles> tls;                      // unset: without encryption, and nobody proves who it is
};

// True when a write with this status may or may not have happened, or may still happen.
bool OutcomeUnknown(const absl::Status& write_status);

class Client {
 public:
  template <typename Result>
  using Callback = std::function<void(absl::StatusOr<Result>)>;
  // Makes the value that replaces `values` (none: not found; several: siblings), or nullopt to delete the
  // key. May be called again by a later Update, so it should depend on its argument only.
  using Resolver = std::function<std::optional<std::string>(const std::vector<std::string>& values)>;

  // Checks `options` (INVALID_ARGUMENT; of `tls`, UNAUTHENTICATED) and returns at once: nodes are connected
  // to when first needed.
  static absl::StatusOr<Client> Connect(Options options);
  // A client over a connection of your own, such as a mock. Only `keyspace` and `timeout` of `options` are
  // used.
  Client(std::shared_ptr<Connection> connection, const Options& options);

  // Without a context a put overwrites what its coordinator holds; a concurrent write stays as a sibling.
  absl::StatusOr<PutResult> Put(std::string key, std::string value, const PutOptions& options = {});
  absl::StatusOr<GetResult> Get(std::string key, const GetOptions& options = {});
  absl::StatusOr<DeleteResult> Delete(std::string key, const DeleteOptions& options = {});
  // Calls `visit` for every row, in the order of the keys' tokens, until it returns false. OK means that all
  // rows were visited or `visit` ended it; after an error some rows may have been visited.
  absl::Status Scan(const ScanOptions& options, const std::function<bool(const ScanRow&)>& visit);
  // Reads the key, lets `resolve` make one value of what is there, and writes that with the context of the
  // read. A concurrent write is never lost: it stays as a sibling, which the next Update is given. The read
  // is retried, the write as any put; nothing is when the outcome of the write is unknown, as `resolve` might
  // then count twice.
  absl::Status Update(std::string key, const Resolver& resolve, const UpdateOptions& options = {});

  // The same, answered by a callback exactly once, possibly before the call returns.
  void AsyncPut(std::string key, std::string value, const PutOptions& options, Callback<PutResult> done);
  void AsyncGet(std::string key, const GetOptions& options, Callback<GetResult> done);
  void AsyncDelete(std::string key, const DeleteOptions& options, Callback<DeleteResult> done);
  // One page. `cursor` is the next_cursor of the page before; empty: from the start.
  void AsyncScan(const ScanOptions& options, std::string cursor, Callback<ScanPage> done);
  void AsyncUpdate(std::string key, Resolver resolve, const UpdateOptions& options,
                   std::function<void(absl::Status)> done);

 private:
  struct Handle;  // shuts the connection down when the last client goes
  std::shared_ptr<Handle> handle_;
  std::string keyspace_;
  std::chrono::milliseconds timeout_;
};

}  // namespace sdk
}  // namespace gyre
