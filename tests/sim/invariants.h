// The invariants: what must hold after every turn of every node, seen from inside the cluster.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <map>
#include <string>
#include <vector>

#include "tests/sim/history.h"
#include "tests/sim/node.h"

namespace gyre::sim {

class Invariants {
 public:
  explicit Invariants(World& world) : world_(world) {}

  void RecordSeen(const SimNode& node, const std::string& row_key, const RecordBytes& record);
  void RowDurable(const SimNode& node, const std::string& row_key, const RecordBytes& before,
                  const RecordBytes& after);
  void TurnEnded(const SimNode& node);

  // A write was acknowledged as stored by `w` nodes at this moment: replicas, or others that hold a hint for
  // one.
  void Acknowledged(const Event& event, const WriteResult& result, uint32_t keyspace,
                    const std::string& row_key, int w, const std::vector<SimNode*>& replicas,
                    const std::vector<SimNode*>& nodes);
  // Nothing is under way any more: the replicas of a row must be the same bytes.
  void Converged(const std::string& row_key, const std::vector<SimNode*>& replicas);
  void SumsAreRight(SimNode& node);

 private:
  struct Written {
    std::string row_key;
    std::string value;
    WriteId write_id;
  };
  void Fail(const SimNode& node, const std::string& sentence);

  World& world_;
  std::map<Dot, Written> written_;                              // whatever was ever given this dot
  absl::flat_hash_map<std::string, std::vector<Dot>> dots_of_;  // by value
  std::map<Actor, uint64_t> highest_;                           // counter minted, at the ends of turns
  std::vector<std::pair<std::string, RecordBytes>> seen_;       // in this turn
};

}  // namespace gyre::sim
