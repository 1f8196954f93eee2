// The Client: reads and writes keys of a Gyre cluster.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/export.h"
#include "client/types.h"

namespace gyre {
inline namespace sdk {

class Connection;

/// Of a client, for all its calls.
struct Options {
  /// HOST:PORT of any nodes; the others are discovered. At least one.
  std::vector<std::string> endpoints;
  std::string keyspace = "default";                 ///< for calls that name none
  std::chrono::milliseconds timeout{5000};          ///< for calls that name none; at most an hour
  std::chrono::milliseconds connect_timeout{1000};  ///< for reaching one node, before the next is tried
  std::optional<TlsFiles> tls;  ///< unset: without encryption, and nobody proves who it is
  /// Read your writes: a get of a key sees what this client and its copies last read of it and wrote to it
  /// since (the last eight writes), whichever replicas answer; UNAVAILABLE where no replica that can be
  /// reached has that. It is remembered for the 65,536 keys that were used last; for others holds what their
  /// r and w promise.
  bool read_your_writes = false;
  /// Hedging: a get that has no answer after so long is sent to a second node too, and the first answer
  /// counts. It cuts the slowest reads short at the price of more of them. 0, the default: never. Writes are
  /// never hedged.
  std::chrono::milliseconds hedge_after{0};
  /// At most so many hedges for each get, on average, so that a cluster that is slow as a whole is not asked
  /// twice as much; above 0, at most 1.
  double hedge_budget = .05;
};

/// True when a write with this status may or may not have happened, or may still happen.
GYRE_EXPORT bool OutcomeUnknown(const absl::Status& write_status);

/// The nodes (HOST:PORT) that a call with this status was sent to, in that order, the last eight at most.
GYRE_EXPORT std::vector<std::string> NodesAsked(const absl::Status& status);

/// How many replicas answered the call with this status, and how many had to, as its coordinator told it of
/// the last attempt. Nothing where they were not too few, or where no coordinator told: it is an older one,
/// or was lost itself.
GYRE_EXPORT std::optional<Acknowledgements> AcknowledgementsOf(const absl::Status& status);

/// Reads and writes keys.
///
///     absl::StatusOr<gyre::Client> client = gyre::Client::Connect({.endpoints = {"127.0.0.1:7400"}});
///     absl::StatusOr<gyre::PutResult> put = client->Put("cart", "milk");
///
/// **Threads.** Every method may be called from any thread at any time. Callbacks run on the client's
/// threads: they must not block, and must not make a synchronous call; they may start asynchronous ones.
///
/// **Ownership.** A Client is a handle; copies share one connection. When the last is destroyed, calls still
/// outstanding are answered with CANCELLED (a write that may have been sent: UNKNOWN), within two seconds.
///
/// **Errors.** An absl::Status with the code of the protocol:
/// - INVALID_ARGUMENT, NOT_FOUND (keyspace): the request is wrong; nothing changed.
/// - RESOURCE_EXHAUSTED: a limit, here or at the server; nothing changed.
/// - UNAVAILABLE: no node, or too few replicas, reached; certainly without effect.
/// - UNKNOWN, DEADLINE_EXCEEDED: for a write, OutcomeUnknown(status) is true.
///
/// A key that is not there is no error: GetResult::found() is false. NodesAsked and AcknowledgementsOf say
/// more of an error than its code.
///
/// **Time.** A call is answered no later than a second after its timeout. Calls that are safe to repeat are
/// retried until then; a put is safe because it carries an id by which the servers know it again.
class GYRE_EXPORT Client {
 public:
  /// Takes the answer of an asynchronous call.
  template <typename Result>
  using Callback = std::function<void(absl::StatusOr<Result>)>;
  /// Makes the value that replaces `values` (none: not found; several: siblings), or nullopt to delete the
  /// key. May be called again by a later Update, so it should depend on its argument only. An error ends the
  /// update with it, and nothing is written. For values of a type, see resolvers.h.
  using Resolver =
      std::function<absl::StatusOr<std::optional<std::string>>(const std::vector<std::string>& values)>;

  /// Checks `options` (INVALID_ARGUMENT; of `tls`, UNAUTHENTICATED) and returns at once: nodes are connected
  /// to when first needed.
  static absl::StatusOr<Client> Connect(Options options);
  /// A client over a connection of your own, such as a mock. Only `keyspace` and `timeout` of `options` are
  /// used.
  Client(std::shared_ptr<Connection> connection, const Options& options);

  /// Without a context a put overwrites what its coordinator holds; a concurrent write stays as a sibling.
  absl::StatusOr<PutResult> Put(std::string key, std::string value, const PutOptions& options = {});
  /// All siblings of the key, and their context; not found is no error.
  absl::StatusOr<GetResult> Get(std::string key, const GetOptions& options = {});
  /// Without a context what a quorum finds is deleted; a concurrent write stays.
  absl::StatusOr<DeleteResult> Delete(std::string key, const DeleteOptions& options = {});
  /// Calls `visit` for every row, in the order of the keys' tokens, until it returns false. OK means that all
  /// rows were visited or `visit` ended it; after an error some rows may have been visited.
  absl::Status Scan(const ScanOptions& options, const std::function<bool(const ScanRow&)>& visit);
  /// Reads the key, lets `resolve` make one value of what is there, and writes that with the context of the
  /// read. A concurrent write is never lost: it stays as a sibling, which the next Update is given. The read
  /// is retried, the write as any put; nothing is when the outcome of the write is unknown, as `resolve`
  /// might then count twice.
  absl::Status Update(std::string key, const Resolver& resolve, const UpdateOptions& options = {});

  /// As Put, answered by a callback exactly once, possibly before the call returns.
  void AsyncPut(std::string key, std::string value, const PutOptions& options, Callback<PutResult> done);
  /// As Get.
  void AsyncGet(std::string key, const GetOptions& options, Callback<GetResult> done);
  /// As Delete.
  void AsyncDelete(std::string key, const DeleteOptions& options, Callback<DeleteResult> done);
  /// One page. `cursor` is the next_cursor of the page before; empty: from the start.
  void AsyncScan(const ScanOptions& options, std::string cursor, Callback<ScanPage> done);
  /// As Update; `resolve` runs on one of the client's threads.
  void AsyncUpdate(std::string key, Resolver resolve, const UpdateOptions& options,
                   std::function<void(absl::Status)> done);

 private:
  struct Handle;  ///< shuts the connection down when the last client goes
  std::shared_ptr<Handle> handle_;
  std::string keyspace_;
  std::chrono::milliseconds timeout_;
};

}  // namespace sdk
}  // namespace gyre
