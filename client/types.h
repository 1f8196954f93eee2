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

// Mutual TLS: paths of PEM files. The certificate carries the URI gyre:client:NAME or gyre:admin:NAME among
// its subject alternative names. Replaced files are read again, for connections that are made later; write a
// new file beside the old one and rename it.
struct TlsFiles {
  std::string ca;           // of the authorities that vouch for the nodes
  std::string certificate;  // and intermediates
  std::string key;          // without a password
};

// How many replicas must answer a call. Whether a number suits the keyspace is for the server to judge.
class Replicas {
 public:
  enum class Kind : uint8_t { kCount, kOne, kQuorum, kAll };

  static constexpr Replicas One() { return Replicas(Kind::kOne, 0); }
  static constexpr Replicas Quorum() { return Replicas(Kind::kQuorum, 0); }  // more than half
  static constexpr Replicas All() { return Replicas(Kind::kAll, 0); }
  static constexpr Replicas Count(int64_t count) { return Replicas(Kind::kCount, count); }

  constexpr Kind kind() const { return kind_; }
  constexpr int64_t count() const { return count_; }  // of a kCount; else 0
  bool operator==(const Replicas&) const = default;

 private:
  constexpr Replicas(Kind kind, int64_t count) : kind_(kind), count_(count) {}
  Kind kind_;
  int64_t count_;
};

// Options of one call. What is unset is what the client's Options say, else what the keyspace says.
struct PutOptions {
  std::string keyspace;
  std::optional<Replicas> w;
  bool strict = false;                 // only primary replicas count toward w
  std::optional<std::string> context;  // of an earlier read or write of this key: what it saw is replaced
  std::optional<std::chrono::milliseconds> ttl;  // one second to a hundred years
  std::optional<std::chrono::milliseconds> timeout;
};
struct GetOptions {
  std::string keyspace;
  std::optional<Replicas> r;
  bool strict = false;
  std::optional<std::chrono::milliseconds> timeout;
};
struct DeleteOptions {
  std::string keyspace;
  std::optional<Replicas> w;
  bool strict = false;
  std::optional<std::string> context;  // unset: what a quorum finds is deleted
  std::optional<std::chrono::milliseconds> timeout;
};
struct ScanOptions {
  std::string keyspace;
  std::string prefix;      // only keys that begin with it
  uint32_t page_rows = 0;  // rows fetched at a time, up to 1,000; 0: the server's choice
  bool keys_only = false;  // values come without their bytes
  std::optional<Replicas> r;
  std::optional<std::chrono::milliseconds> timeout;  // of each page
};
struct UpdateOptions {
  std::string keyspace;
  std::optional<Replicas> r;
  std::optional<Replicas> w;
  bool strict = false;
  std::optional<std::chrono::milliseconds> ttl;
  std::optional<std::chrono::milliseconds> timeout;  // of the read and of the write, each
};

// A context is opaque bytes: keep it, and give it back with the write that builds on what was seen.
struct PutResult {
  std::string context;
  uint32_t acks = 0;       // replicas that hold the write durably, fallbacks included
  uint32_t fallbacks = 0;  // how many of those are fallbacks
};
struct DeleteResult {
  std::string context;
  uint32_t acks = 0;
  uint32_t fallbacks = 0;
};
struct Value {
  std::string bytes;
  std::string dot;             // names the write, for people
  uint64_t expires_at_ms = 0;  // milliseconds since 1970; 0: never
};
struct GetResult {
  std::vector<Value> values;  // empty: not found. Several: siblings, to be resolved by a put with `context`
  std::string context;        // also when nothing was found
  bool found() const { return !values.empty(); }
};
struct ScanRow {
  std::string key;
  std::vector<Value> values;
  std::string context;
};
struct ScanPage {
  std::vector<ScanRow> rows;  // may be empty although the scan is not at its end
  std::string next_cursor;    // empty: the scan is complete
};

}  // namespace sdk
}  // namespace gyre
