// A Connection carries single attempts to nodes; retrying is above it (call.h), so that a mock of it can show
// how.
//
// Threads: every method may be called from any thread at any time.
#pragma once

#include <absl/status/status.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "client/export.h"
#include "client/types.h"

namespace gyre {
inline namespace sdk {

/// Of the clock by which calls end.
using TimePoint = std::chrono::steady_clock::time_point;

/// A node as the connection knows it. Small numbers, given in the order in which addresses become known.
using PeerId = uint32_t;

/// One put as nodes are asked it; its fields are those of PutOptions, as are those below of theirs.
struct PutRequest {
  std::string keyspace;
  std::string key;
  std::string value;
  std::optional<Replicas> w;
  bool strict = false;
  std::optional<std::string> context;
  std::optional<std::chrono::milliseconds> ttl;
  std::optional<uint64_t> expires_at_ms;
  std::string write_id;  ///< 16 bytes, the same in each attempt; empty: made by the call
  bool retry = false;    ///< an earlier attempt may have been sent
};
/// One get.
struct GetRequest {
  std::string keyspace;
  std::string key;
  std::optional<Replicas> r;
  bool strict = false;
  std::vector<std::string> contexts;  ///< the answer must have seen all that they have
};
/// One delete.
struct DeleteRequest {
  std::string keyspace;
  std::string key;
  std::optional<Replicas> w;
  bool strict = false;
  std::optional<std::string> context;
};
/// One page of a scan.
struct ScanRequest {
  std::string keyspace;
  std::string prefix;
  std::string cursor;
  uint32_t page_rows = 0;
  bool keys_only = false;
  std::optional<Replicas> r;
};
/// What a node is asked.
using Request = std::variant<PutRequest, GetRequest, DeleteRequest, ScanRequest>;
/// What a node answers when it has no error to tell.
using Reply = std::variant<std::monostate, PutResult, GetResult, DeleteResult, ScanPage>;

/// `status`, which is an error, such that AcknowledgementsOf gives these: how a connection tells them.
GYRE_EXPORT absl::Status WithAcknowledgements(absl::Status status, const Acknowledgements& acknowledgements);

/// How far an attempt got.
enum class Fate : uint8_t {
  kAnswered,  ///< the node answered: `status` is its word
  kNotSent,   ///< it certainly never reached the node
  kLost,      ///< it may have reached the node, and no answer came
};
/// The end of one attempt.
struct AttemptResult {
  Fate fate = Fate::kAnswered;
  absl::Status status;
  Reply reply;  ///< of the request's kind, when `status` is OK
};

/// One call that attempts are made for. It lives while an attempt is outstanding.
class GYRE_EXPORT Exchange {
 public:
  virtual ~Exchange() = default;
  /// Must not change while an attempt is outstanding.
  virtual const Request& request() const = 0;
  /// Takes the end of the attempt that is outstanding.
  virtual void Done(AttemptResult result) = 0;
};

/// Why a task runs.
enum class Wake : uint8_t {
  kTime,     ///< its time has come
  kStopped,  ///< it never will: the task must end what it is part of, and plan nothing more
};

/// Carries single attempts to nodes; the Client retries above it. Every method may be called from any thread.
class GYRE_EXPORT Connection {
 public:
  /// Of one attempt.
  struct SendOptions {
    TimePoint deadline;                      ///< of this attempt
    std::chrono::milliseconds time_allowed;  ///< told to the node
  };

  virtual ~Connection() = default;

  /// The best node for a key (empty: any node) outside `avoid`, or nullopt when none is left.
  virtual std::optional<PeerId> Pick(std::string_view keyspace, std::string_view key,
                                     std::span<const PeerId> avoid) = 0;
  /// HOST:PORT of a node, for errors; empty where nodes have no address.
  virtual std::string AddressOf(PeerId) { return {}; }
  /// Makes one attempt. Calls exchange->Done exactly once, no later than half a second after the deadline,
  /// possibly before it returns. REQUIRES: `peer` came from Pick.
  virtual void Send(PeerId peer, std::shared_ptr<Exchange> exchange, SendOptions options) = 0;

  /// The time by which deadlines are meant.
  virtual TimePoint Now() = 0;
  /// Runs `task` exactly once: at that time on a thread of the connection, or with kStopped at
  /// once after Shutdown.
  virtual void RunAt(TimePoint time, std::function<void(Wake)> task) = 0;
  /// 64 bits that nobody can guess the equal of.
  virtual uint64_t Random() = 0;
  /// Answers what is outstanding with CANCELLED and ends the connection's threads, within two seconds. Later
  /// attempts are refused with CANCELLED. May be called more than once.
  virtual void Shutdown() = 0;
};

}  // namespace sdk
}  // namespace gyre
