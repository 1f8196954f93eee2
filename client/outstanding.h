// The calls that one node has not answered yet, found again by id. Internal to the SDK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "client/connection.h"

namespace gyre {
inline namespace sdk {

// Not thread-safe: its owner locks. Costs no allocation per call once it has grown.
class Outstanding {
 public:
  using Id = uint64_t;  // never 0, and not used again for 2^32 calls

  struct Entry {
    std::shared_ptr<Exchange> exchange;  // null: free
    Connection::SendOptions options;
    uint64_t stream = 0;  // that it was written to; 0: not sent yet
    TimePoint sent_at;
    size_t bytes = 0;  // of its request, about
  };

  Id Add(Entry entry);
  // The entry, or null when there is none of this id (any more).
  Entry* Find(Id id);
  // Removes an entry and returns it; its exchange is null when there is none of this id.
  Entry Take(Id id);

  size_t size() const { return used_; }
  size_t bytes() const { return bytes_; }

  // Removes and returns the entries for which `chosen` is true.
  template <typename Chosen>
  std::vector<Entry> TakeIf(Chosen chosen) {
    std::vector<Entry> taken;
    for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot].entry.exchange != nullptr && chosen(slots_[slot].entry)) taken.push_back(Free(slot));
    }
    return taken;
  }
  // The earliest deadline, or TimePoint::max().
  TimePoint NextDeadline() const;

 private:
  struct Slot {
    uint32_t generation = 1;
    Entry entry;
  };
  Entry Free(uint32_t slot);

  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  size_t used_ = 0;
  size_t bytes_ = 0;
};

}  // namespace sdk
}  // namespace gyre
