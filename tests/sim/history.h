// The history: what clients did and were told, and what may follow from that. Knows nothing of nodes.
//
// Each put or delete is an event. What a client had seen when it wrote gives the events their order; what a
// read returns must be explained by it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/core/time.h"
#include "storage/causal/record.h"

namespace gyre::sim {

using EventId = uint32_t;            // index into History::events
using Bits = std::vector<uint64_t>;  // of events of one key, by their number there

// A client's causal context as the model knows it.
struct Claims {
  struct Claim {
    EventId event = 0;
    Micros at;         // the read that showed it began then
    int r = 0;         // how many replicas that read asked; of an own write: all
    bool own = false;  // not read but written, by the client itself
    bool sure = true;  // false: an own write that no quorum need know
  };
  std::string bytes;  // what the cluster gave
  std::vector<Claim> claims;
};

struct Key {
  std::string keyspace;
  std::string name;
  auto operator<=>(const Key&) const = default;
};

struct Event {
  EventId id = 0;
  Key key;
  size_t number = 0;  // among the events of its key
  bool is_delete = false;
  bool blind = false;  // sent without a context
  bool expires = false;
  std::string value;
  WriteId write_id;
  std::vector<Claims::Claim> claims;
  Bits ancestors;  // all events that it may supersede by its context
  Bits surely;     // those of them that it must supersede
  Micros start;
  Micros end;  // of the last attempt that ended
  int attempts = 0;
  int pending = 0;       // attempts without an end
  bool unknown = false;  // an attempt ended so
  std::optional<Micros> acked;
  int w = 0;     // the least that an acknowledgement was for
  int lost = 0;  // disks that were lost since it began: so many replicas fewer may have it
  // How many have it at least. While one is, reads must meet it just as before: a replica that lost its disk
  // counts for none until it has what the others have.
  int kept() const { return w - lost; }
  // No attempt can have taken effect.
  bool refused() const { return pending == 0 && !unknown && !acked; }
};

enum class Outcome : uint8_t { kOk, kRefused, kUnknown };

class History {
 public:
  Event& Begin(Key key, bool is_delete, std::string value, WriteId write_id, const Claims* context,
               Micros now);
  void Expires(EventId id) { events_[id].expires = true; }
  void Attempt(EventId id) { ++events_[id].attempts, ++events_[id].pending; }
  void AttemptEnded(EventId id, Outcome outcome, int w, Micros now);

  void DiskLost() {
    for (Event& event : events_) ++event.lost;
  }

  // What a read of `key` returned. Empty when it can be explained, else a sentence.
  struct Read {
    Key key;
    std::vector<std::string> values;
    Micros start;
    Micros end;
    int r = 0;
    int n = 0;                 // replicas of the key
    bool all_expired = false;  // whatever was to expire must have done so
    ConflictRule rule = ConflictRule::kSiblings;
  };
  std::string Check(const Read& read) const;

  const Event& event(EventId id) const { return events_[id]; }
  const Event* OfValue(const std::string& value) const;
  std::vector<Key> Keys() const;

 private:
  bool Resurrected(const Event& value, const Read& read) const;
  static bool MayReplace(const Event& by, const Event& put, ConflictRule rule);
  std::vector<bool> Explaining(const Read& read, const Bits& shown) const;

  std::vector<Event> events_;
  std::map<Key, std::vector<EventId>> by_key_;
  std::map<std::string, EventId> by_value_;
};

}  // namespace gyre::sim
