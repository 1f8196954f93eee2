// A table of slots with a free list; an id is a slot and how often the slot was used.
#include "client/outstanding.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace gyre {
inline namespace sdk {
namespace {

constexpr int kSlotBits = 32;

uint32_t SlotOf(Outstanding::Id id) { return static_cast<uint32_t>(id); }
uint32_t GenerationOf(Outstanding::Id id) { return static_cast<uint32_t>(id >> kSlotBits); }

}  // namespace

Outstanding::Id Outstanding::Add(Entry entry) {
  assert(entry.exchange != nullptr);
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  ++used_;
  bytes_ += entry.bytes;
  slots_[slot].entry = std::move(entry);
  return Id{slots_[slot].generation} << kSlotBits | slot;
}

Outstanding::Entry* Outstanding::Find(Id id) {
  const uint32_t slot = SlotOf(id);
  if (slot >= slots_.size() || slots_[slot].generation != GenerationOf(id)) return nullptr;
  return slots_[slot].entry.exchange == nullptr ? nullptr : &slots_[slot].entry;
}

Outstanding::Entry Outstanding::Take(Id id) { return Find(id) == nullptr ? Entry{} : Free(SlotOf(id)); }

TimePoint Outstanding::NextDeadline() const {
  TimePoint next = TimePoint::max();
  for (const Slot& slot : slots_) {
    if (slot.entry.exchange != nullptr) next = std::min(next, slot.entry.options.deadline);
  }
  return next;
}

Outstanding::Entry Outstanding::Free(uint32_t slot) {
  Entry entry = std::exchange(slots_[slot].entry, {});
  if (++slots_[slot].generation == 0) slots_[slot].generation = 1;
  free_.push_back(slot);
  --used_;
  bytes_ -= entry.bytes;
  return entry;
}

}  // namespace sdk
}  // namespace gyre
