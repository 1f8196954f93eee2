// The history: what explains a read, and what does not.
#include "tests/sim/history.h"

#include <algorithm>

namespace gyre::sim {
namespace {

bool Has(const Bits& bits, size_t number) {
  return number / 64 < bits.size() && (bits[number / 64] >> number % 64 & 1) != 0;
}

void Set(Bits& bits, size_t number) {
  if (bits.size() <= number / 64) bits.resize(number / 64 + 1);
  bits[number / 64] |= uint64_t{1} << number % 64;
}

void Join(Bits& bits, const Bits& other) {
  if (bits.size() < other.size()) bits.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) bits[i] |= other[i];
}

std::string List(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += (list.empty() ? "" : ", ") + value;
  return "[" + list + "]";
}

}  // namespace

Event& History::Begin(Key key, bool is_delete, std::string value, WriteId write_id, const Claims* context,
                      Micros now) {
  std::vector<EventId>& of_key = by_key_[key];
  Event event = {.id = static_cast<EventId>(events_.size()),
                 .key = std::move(key),
                 .number = of_key.size(),
                 .is_delete = is_delete,
                 .blind = context == nullptr,
                 .value = std::move(value),
                 .write_id = write_id,
                 .start = now,
                 .end = now};
  if (context != nullptr) {
    event.claims = context->claims;
    for (const Claims::Claim& claim : event.claims) {
      Set(event.ancestors, events_[claim.event].number);
      Join(event.ancestors, events_[claim.event].ancestors);
      if (!claim.sure) continue;
      Set(event.surely, events_[claim.event].number);
      Join(event.surely, events_[claim.event].surely);
    }
  }
  of_key.push_back(event.id);
  if (!is_delete) by_value_[event.value] = event.id;
  return events_.emplace_back(std::move(event));
}

void History::AttemptEnded(EventId id, Outcome outcome, int w, Micros now) {
  Event& event = events_[id];
  --event.pending;
  event.end = now;
  if (outcome == Outcome::kUnknown) event.unknown = true;
  if (outcome == Outcome::kOk) {
    event.w = event.acked ? std::max(event.w, w) : w;
    if (!event.acked) event.acked = now;
  }
}

const Event* History::OfValue(const std::string& value) const {
  const auto found = by_value_.find(value);
  return found == by_value_.end() ? nullptr : &events_[found->second];
}

std::vector<Key> History::Keys() const {
  std::vector<Key> keys;
  for (const auto& [key, events] : by_key_) keys.push_back(key);
  return keys;
}

std::string History::Check(const Read& read) const {
  const std::string what = "a read of " + read.key.keyspace + "/" + read.key.name +
                           " with R=" + std::to_string(read.r) + " returned " + List(read.values) + ", ";
  std::vector<const Event*> shown;
  Bits shown_bits;
  for (const std::string& value : read.values) {
    const Event* event = OfValue(value);
    if (event == nullptr || event->key != read.key) return what + "but nobody ever put " + value;
    if (event->expires && read.all_expired) return what + "but " + value + " has expired";
    if (event->refused()) return what + "but the put of " + value + " was refused";
    if (Has(shown_bits, event->number)) return what + "the same value twice";
    Set(shown_bits, event->number);
    shown.push_back(event);
  }
  if (read.rule == ConflictRule::kLastWriteWins && shown.size() > 1)
    return what + "more than one value where the last write wins";
  for (const Event* value : shown) {
    for (const Event* other : shown) {
      if (value->attempts == 1 && Has(other->surely, value->number)) {
        return what + "but who put " + other->value + " had seen " + value->value;
      }
    }
    if (Resurrected(*value, read))
      return what + "but " + value->value + " was superseded before by an acknowledged write";
  }

  const auto found = by_key_.find(read.key);
  if (found == by_key_.end()) return {};
  const std::vector<bool> explains = Explaining(read, shown_bits);
  for (const EventId id : found->second) {
    const Event& put = events_[id];
    if (put.is_delete || put.expires || !put.acked || *put.acked >= read.start || put.kept() <= 0 ||
        read.r + put.w <= read.n)
      continue;
    if (Has(shown_bits, put.number)) continue;
    if (std::ranges::any_of(found->second, [&](EventId other) {
          return explains[events_[other].number] && MayReplace(events_[other], put, read.rule);
        })) {
      continue;
    }
    return what + "but lacks " + put.value + ", acknowledged with W=" + std::to_string(put.w) + " of " +
           std::to_string(read.n) + " before, and nothing superseded it";
  }
  return {};
}

// Whether the one may have taken the other away.
bool History::MayReplace(const Event& by, const Event& put, ConflictRule rule) {
  if (by.id == put.id) return false;
  const bool later = by.pending > 0 || by.unknown || by.end >= put.start;
  if (rule == ConflictRule::kLastWriteWins)
    return !Has(put.ancestors, by.number) || (by.attempts > 1 && later);
  return Has(by.ancestors, put.number) || (by.blind && later);
}

// Which events of the key may be why others are not shown: those that are shown, that show nothing, and those
// that were taken away by such a one. By their number.
std::vector<bool> History::Explaining(const Read& read, const Bits& shown) const {
  const std::vector<EventId>& events = by_key_.at(read.key);
  std::vector<bool> explains(events.size());
  for (bool more = true; more;) {
    more = false;
    for (const EventId id : events) {
      const Event& event = events_[id];
      if (explains[event.number] || event.refused() || event.start > read.end) continue;
      const auto taken_away = [&](EventId other) {
        return explains[events_[other].number] && MayReplace(events_[other], event, read.rule);
      };
      if (event.is_delete || event.expires || Has(shown, event.number) ||
          std::ranges::any_of(events, taken_away)) {
        explains[event.number] = more = true;
      }
    }
  }
  return explains;
}

// Whether a write that was acknowledged before the read, and that this read must see, had seen the value.
bool History::Resurrected(const Event& value, const Read& read) const {
  for (const EventId id : by_key_.at(read.key)) {
    const Event& by = events_[id];
    if (!by.acked || *by.acked >= read.start || by.kept() <= 0 || read.r + by.w <= read.n ||
        !Has(by.surely, value.number))
      continue;
    if (value.attempts == 1) return true;
    // Where the last write wins nothing remembers that a retried put was superseded: an attempt that was on
    // its way for long is a new write when it arrives, and the last.
    if (read.rule == ConflictRule::kLastWriteWins) continue;
    // An attempt that came in after its writer looked, or where it did not look, is a put of its own.
    for (const EventId other : by_key_.at(read.key)) {
      const Event& link = events_[other];
      if (other != id && !Has(by.surely, link.number)) continue;
      for (const Claims::Claim& claim : link.claims) {
        if (claim.event == value.id && claim.sure && value.pending == 0 && value.acked &&
            value.end < claim.at && value.kept() > 0 && claim.r + value.w > read.n)
          return true;
      }
    }
  }
  return false;
}

}  // namespace gyre::sim
