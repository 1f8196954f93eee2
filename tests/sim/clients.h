// The clients of a simulated cluster: they put, get, delete and scan, and log what they did and were told.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/cluster.h"
#include "tests/sim/history.h"

namespace gyre::sim {

class Clients {
 public:
  Clients(World& world, Cluster& cluster, size_t clients);

  // Every client acts now and then until `end`.
  void Begin(Micros end);
  // Reads every key that was ever written, from all replicas of it. `read` counts the good answers.
  void ReadAll(size_t& read);
  void DiskLost();
  // From now on no value with a time to live may be shown.
  void AllExpired() { all_expired_ = true; }
  void AddKeyspace(const std::string& keyspace) { keyspaces_.push_back(keyspace); }
  const History& history() const { return history_; }

 private:
  struct Client {
    size_t number = 0;
    int outstanding = 0;
    std::map<Key, Claims> contexts;
  };
  struct Scan {
    std::string keyspace;
    std::string cursor;
    uint32_t limit = 0;
    Micros start;
    std::map<std::string, std::vector<std::string>> rows;
  };

  void Act(Client& client, Micros end);
  void Write(Client& client, const Key& key, bool is_delete, const Claims* context);
  void Attempt(Client& client, EventId event, Call call, size_t node);
  void Get(Client* client, const Key& key, std::optional<ReplicaCount> r, size_t* good);
  void ScanOn(Client& client, const std::shared_ptr<Scan>& scan);
  void CheckScan(const Scan& scan);
  void Explain(const History::Read& read);
  std::optional<ReplicaCount> MaybeCount(const Key& key);
  int Needed(const std::string& keyspace, const std::optional<ReplicaCount>& asked, bool write) const;
  int Replicas(const std::string& keyspace) const;
  // How many replicas a read of `r` may be held to: without strict quorums none, until all is calm.
  int Promised(int r, bool after_all) const;
  Outcome Judge(const CallResult* result);

  World& world_;
  Cluster& cluster_;
  History history_;
  std::vector<std::string> keyspaces_ = {"", "lww", "other"};
  bool strict_;  // quorums of primaries only
  size_t keys_;
  std::vector<std::unique_ptr<Client>> clients_;
  uint64_t written_ = 0;
  bool all_expired_ = false;
};

}  // namespace gyre::sim
