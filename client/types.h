// What calls take and what they return: plain values that any thread may copy.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// The inline namespace keeps these names apart from a server's when both are linked into one program.
namespace gyre {
inline namespace sdk {

/// Mutual TLS: paths of PEM files. The certificate carries the URI gyre:client:NAME or gyre:admin:NAME among
/// its subject alternative names. Replaced files are read again, for connections that are made later; write a
/// new file beside the old one and rename it.
struct TlsFiles {
  std::string ca;           ///< of the authorities that vouch for the nodes
  std::string certificate;  ///< and intermediates
  std::string key;          ///< without a password
};

/// How many replicas must answer a call. Whether a number suits the keyspace is for the server to judge.
class Replicas {
 public:
  /// A number, or what the keyspace makes one of.
  enum class Kind : uint8_t { kCount, kOne, kQuorum, kAll };

  /// Any one of them.
  static constexpr Replicas One() { return Replicas(Kind::kOne, 0); }
  static constexpr Replicas Quorum() { return Replicas(Kind::kQuorum, 0); }  ///< more than half
  /// Each of them.
  static constexpr Replicas All() { return Replicas(Kind::kAll, 0); }
  /// So many of them.
  static constexpr Replicas Count(int64_t count) { return Replicas(Kind::kCount, count); }

  /// Which of these it is.
  constexpr Kind kind() const { return kind_; }
  constexpr int64_t count() const { return count_; }  ///< of a kCount; else 0
  bool operator==(const Replicas&) const = default;

 private:
  constexpr Replicas(Kind kind, int64_t count) : kind_(kind), count_(count) {}
  Kind kind_;
  int64_t count_;
};

/// Of one put, as those below are of other calls. What is unset is what the client's Options say, else what
/// the keyspace says.
struct PutOptions {
  std::string keyspace;
  std::optional<Replicas> w;
  bool strict = false;                 ///< only primary replicas count toward w
  std::optional<std::string> context;  ///< of an earlier read or write of this key: what it saw is replaced
  std::optional<std::chrono::milliseconds> ttl;  ///< one second to a hundred years
  /// Instead of ttl: milliseconds since 1970, at most a hundred years ahead; 0: never, whatever the keyspace
  /// says.
  std::optional<uint64_t> expires_at_ms;
  /// By which the nodes know the put again when it is retried: 16 bytes, not all zero. Empty: made at random.
  /// To be given by a program that goes on after a crash and may have made this put before; then with
  /// `may_have_been_sent`, and the put happens once.
  std::string write_id;
  bool may_have_been_sent = false;  ///< see write_id
  std::optional<std::chrono::milliseconds> timeout;
};
/// Of one get.
struct GetOptions {
  std::string keyspace;
  std::optional<Replicas> r;
  bool strict = false;
  /// Of an earlier read or write of this key, by anybody: the answer has seen all that it has. UNAVAILABLE
  /// when no replica that can be reached has.
  std::optional<std::string> context;
  std::optional<std::chrono::milliseconds> timeout;
};
/// Of one delete.
struct DeleteOptions {
  std::string keyspace;
  std::optional<Replicas> w;
  bool strict = false;
  std::optional<std::string> context;  ///< unset: what a quorum finds is deleted
  std::optional<std::chrono::milliseconds> timeout;
};
/// Of one scan.
struct ScanOptions {
  std::string keyspace;
  std::string prefix;      ///< only keys that begin with it
  uint32_t page_rows = 0;  ///< rows fetched at a time, up to 1,000; 0: the server's choice
  bool keys_only = false;  ///< values come without their bytes
  std::optional<Replicas> r;
  std::optional<std::chrono::milliseconds> timeout;  ///< of each page
};
/// Of one update.
struct UpdateOptions {
  std::string keyspace;
  std::optional<Replicas> r;
  std::optional<Replicas> w;
  bool strict = false;
  std::optional<std::chrono::milliseconds> ttl;
  std::optional<std::chrono::milliseconds> timeout;  ///< of the read and of the write, each
};

/// Of a call that failed for want of replicas: how many answered, and how many had to.
struct Acknowledgements {
  uint32_t got = 0;     ///< of a write: replicas that hold it durably, and maybe more by now; not begun: 0
  uint32_t needed = 0;  ///< what w or r made of it, or of the read that some writes begin with
  bool operator==(const Acknowledgements&) const = default;
};

/// What a put did. A context is opaque bytes: keep it, and give it back with the write that builds on what
/// was seen.
struct PutResult {
  std::string context;
  uint32_t acks = 0;       ///< replicas that hold the write durably, fallbacks included
  uint32_t fallbacks = 0;  ///< how many of those are fallbacks
};
/// What a delete did.
struct DeleteResult {
  std::string context;
  uint32_t acks = 0;
  uint32_t fallbacks = 0;
};
/// One version of a key.
struct Value {
  std::string bytes;
  std::string dot;             ///< names the write, for people
  uint64_t expires_at_ms = 0;  ///< milliseconds since 1970; 0: never
};
/// What a get found.
struct GetResult {
  std::vector<Value> values;  ///< empty: not found. Several: siblings, to be resolved by a put with `context`
  std::string context;        ///< also when nothing was found
  /// False when there is no such key, also after a delete or an expiry.
  bool found() const { return !values.empty(); }
};
/// One key of a scan.
struct ScanRow {
  std::string key;
  std::vector<Value> values;
  std::string context;
};
/// Some keys of a scan, and where it goes on.
struct ScanPage {
  std::vector<ScanRow> rows;  ///< may be empty although the scan is not at its end
  std::string next_cursor;    ///< empty: the scan is complete
};

}  // namespace sdk
}  // namespace gyre
