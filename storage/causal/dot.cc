// Version vectors: lookup, growth and join over entries sorted by actor.
#include "storage/causal/dot.h"

#include <algorithm>
#include <cassert>

namespace gyre {
namespace {

auto FirstNotBelow(const VersionVector::Entries& entries, const Actor& actor) {
  return std::lower_bound(entries.begin(), entries.end(), actor,
                          [](const VersionVector::Entry& entry, const Actor& a) { return entry.actor < a; });
}

}  // namespace

uint64_t VersionVector::CounterOf(const Actor& actor) const {
  const auto it = FirstNotBelow(entries_, actor);
  return it != entries_.end() && it->actor == actor ? it->counter : 0;
}

bool VersionVector::Covers(const VersionVector& other) const {
  auto mine = entries_.begin();
  for (const Entry& theirs : other.entries_) {
    while (mine != entries_.end() && mine->actor < theirs.actor) ++mine;
    if (mine == entries_.end() || mine->actor != theirs.actor || mine->counter < theirs.counter) return false;
  }
  return true;
}

uint64_t VersionVector::Max() const { return Highest().counter; }

Dot VersionVector::Highest() const {
  Dot highest;
  for (const Entry& entry : entries_) highest = std::max(highest, Dot{entry.actor, entry.counter});
  return highest;
}

void VersionVector::Add(const Dot& dot) {
  assert(dot.counter > 0);
  // Decoding adds in order: no search then.
  if (entries_.empty() || entries_.back().actor < dot.actor) {
    entries_.push_back({dot.actor, dot.counter});
    return;
  }
  const auto at = entries_.begin() + (FirstNotBelow(entries_, dot.actor) - entries_.cbegin());
  if (at->actor == dot.actor) {
    at->counter = std::max(at->counter, dot.counter);
  } else {
    entries_.insert(at, {dot.actor, dot.counter});
  }
}

void VersionVector::Join(const VersionVector& other) {
  Entries joined;
  if (entries_.size() + other.entries_.size() > joined.capacity()) {
    joined.reserve(std::max(entries_.size(), other.entries_.size()));
  }
  auto a = entries_.cbegin();
  auto b = other.entries_.cbegin();
  while (a != entries_.cend() && b != other.entries_.cend()) {
    if (a->actor < b->actor) {
      joined.push_back(*a++);
    } else if (b->actor < a->actor) {
      joined.push_back(*b++);
    } else {
      joined.push_back({a->actor, std::max(a->counter, b->counter)});
      ++a;
      ++b;
    }
  }
  joined.insert(joined.end(), a, entries_.cend());
  joined.insert(joined.end(), b, other.entries_.cend());
  entries_ = std::move(joined);
}

// Not by printf: each value that a get returns has one.
std::string ToString(const Dot& dot) {
  std::string text;
  text.reserve(48);
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[dot.actor.node >> shift & 15];
  return text.append(".")
      .append(std::to_string(dot.actor.incarnation))
      .append("@")
      .append(std::to_string(dot.counter));
}

std::string ToString(const VersionVector& vector) {
  std::string text = "{";
  for (const VersionVector::Entry& entry : vector.entries()) {
    if (text.size() > 1) text += ", ";
    text += ToString(Dot{entry.actor, entry.counter});
  }
  return text + "}";
}

}  // namespace gyre
