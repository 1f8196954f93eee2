// Who this node is: the identity file in the data directory, and the lock that keeps a second process out.
//
// A node is its id and never its address. <data_dir>/identity lies beside <data_dir>/store, so that a store
// can be wiped and its node stay who it was.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <cstdint>
#include <string>
#include <utility>

#include "ring/token.h"

namespace gyre {

// Owns the data directory until it dies: one process at a time. NOT thread-safe. Move-only.
class Identity {
 public:
  Identity(Identity&& other) noexcept;
  Identity& operator=(Identity&& other) noexcept;
  ~Identity();

  NodeId node() const { return node_; }
  uint64_t cluster() const { return cluster_; }  // 0: belongs to no cluster yet
  uint64_t stores() const { return stores_; }    // that were made after the first one was lost
  const std::string& data_dir() const { return data_dir_; }
  std::string store_dir() const { return data_dir_ + "/store"; }

  // Records, durably and for ever, the cluster this node belongs to. FAILED_PRECONDITION when that is another
  // one already; UNAVAILABLE when it cannot be written. REQUIRES: cluster != 0.
  absl::Status SetCluster(uint64_t cluster);
  // Counts one more store, durably: what names writes must differ from what earlier stores used.
  absl::Status CountStore();

 private:
  friend absl::StatusOr<Identity> OpenIdentity(const std::string& data_dir);
  Identity(std::string data_dir, int lock) : data_dir_(std::move(data_dir)), lock_(lock) {}
  absl::Status Read();
  absl::Status Save() const;

  std::string data_dir_;
  int lock_ = -1;  // the open, locked file
  NodeId node_;
  uint64_t cluster_ = 0;
  uint64_t stores_ = 0;
};

// Takes the data directory and reads who we are; on first use makes both. Errors, each a sentence:
// FAILED_PRECONDITION  another process has the directory, or it holds a store without an identity;
// DATA_LOSS            the identity file is garbled;
// UNAVAILABLE          the directory cannot be made, read or written.
absl::StatusOr<Identity> OpenIdentity(const std::string& data_dir);

}  // namespace gyre
