// How records merge, and what a put or a delete does to one.
#include "storage/causal/record.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace gyre {
namespace {

auto FirstNotBelow(const std::vector<SupersededRetry>& list, const WriteId& id) {
  return std::lower_bound(list.begin(), list.end(), id,
                          [](const SupersededRetry& entry, const WriteId& i) { return entry.write_id < i; });
}

bool IsSuperseded(const std::vector<SupersededRetry>& list, const WriteId& id) {
  if (list.empty() || id.empty()) return false;
  const auto it = FirstNotBelow(list, id);
  return it != list.end() && it->write_id == id;
}

void Supersede(std::vector<SupersededRetry>& list, const WriteId& id, const Dot& by) {
  const auto at = list.begin() + (FirstNotBelow(list, id) - list.cbegin());
  if (at != list.end() && at->write_id == id) {
    at->by = std::max(at->by, by);
  } else {
    list.insert(at, {id, by});
  }
}

// Each retried version that goes leaves its dot, whatever it went for: so `by` does not depend on the order
// of merges.
void DropSuperseded(Record& record) {
  if (record.superseded.empty()) return;
  std::erase_if(record.versions, [&](const Version& version) {
    if (!IsSuperseded(record.superseded, version.write_id)) return false;
    if (version.retried) Supersede(record.superseded, version.write_id, version.dot);
    return true;
  });
}

std::vector<SupersededRetry> Union(const std::vector<SupersededRetry>& a,
                                   const std::vector<SupersededRetry>& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  std::vector<SupersededRetry> all;
  all.reserve(a.size() + b.size());
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() && y != b.end()) {
    if (x->write_id < y->write_id) {
      all.push_back(*x++);
    } else if (y->write_id < x->write_id) {
      all.push_back(*y++);
    } else {
      all.push_back({x->write_id, std::max(x->by, y->by)});
      ++x;
      ++y;
    }
  }
  all.insert(all.end(), x, a.end());
  all.insert(all.end(), y, b.end());
  return all;
}

void DropReplaced(Record& record, const CausalContext* context, const Dot& by, ConflictRule rule) {
  const bool last_write_wins = rule == ConflictRule::kLastWriteWins;
  std::erase_if(record.versions, [&](const Version& version) {
    if (last_write_wins) return true;
    if (context != nullptr && !context->Covers(version.dot)) return false;
    if (version.retried) Supersede(record.superseded, version.write_id, by);
    return true;
  });
  DropSuperseded(record);
}

void CheckWrite(const Record& record, const Dot& dot, const CausalContext* context) {
  assert(dot.counter > record.seen.Max());
  if (context == nullptr) return;
  assert(dot.counter > context->seen.Max());
  assert(!context->has_own || record.seen.Covers(context->own));
}

}  // namespace

Record Merge(const Record& a, const Record& b, ConflictRule rule) {
  Record merged;
  merged.seen = a.seen;
  merged.seen.Join(b.seen);
  const bool last_write_wins = rule == ConflictRule::kLastWriteWins;
  if (!last_write_wins) merged.superseded = Union(a.superseded, b.superseded);
  const Dot winner = last_write_wins ? merged.seen.Highest() : Dot{};

  if (!a.versions.empty() || !b.versions.empty()) {
    merged.versions.reserve(last_write_wins ? 1 : std::max(a.versions.size(), b.versions.size()));
  }
  const auto take = [&](const Version& version, bool seen_without_it) {
    if (last_write_wins) {
      if (!seen_without_it && version.dot == winner) merged.versions.push_back(version);
    } else if (!seen_without_it) {
      merged.versions.push_back(version);
    } else if (version.retried) {
      // The write that superseded it may never have met it, only a context that covers it.
      Supersede(merged.superseded, version.write_id, version.dot);
    }
  };
  auto x = a.versions.begin();
  auto y = b.versions.begin();
  while (x != a.versions.end() || y != b.versions.end()) {
    if (y == b.versions.end() || (x != a.versions.end() && x->dot < y->dot)) {
      take(*x, b.seen.Covers(x->dot));
      ++x;
    } else if (x == a.versions.end() || y->dot < x->dot) {
      take(*y, a.seen.Covers(y->dot));
      ++y;
    } else {
      take(*x, false);
      ++x;
      ++y;
    }
  }
  DropSuperseded(merged);
  return merged;
}

void ApplyPut(Record& record, Version version, const CausalContext* context, ConflictRule rule) {
  CheckWrite(record, version.dot, context);
  assert(!version.retried || context != nullptr);
  assert(!version.retried || !version.write_id.empty());
  // A put that was superseded before this attempt of it arrived stays dead. Where it knows of nothing, it
  // then replaces nothing either: what is here came after it.
  const bool dead = IsSuperseded(record.superseded, version.write_id);
  if (!dead || context != nullptr) DropReplaced(record, context, version.dot, rule);
  if (context != nullptr) record.seen.Join(context->seen);
  record.seen.Add(version.dot);
  if (dead || IsSuperseded(record.superseded, version.write_id)) return;
  record.versions.push_back(std::move(version));
}

void ApplyDelete(Record& record, const Dot& dot, const CausalContext& context, ConflictRule rule) {
  CheckWrite(record, dot, &context);
  DropReplaced(record, &context, dot, rule);
  record.seen.Join(context.seen);
  record.seen.Add(dot);
}

CausalContext ContextAfterWrite(const Record& record, const Dot& dot, const CausalContext* before) {
  assert(record.seen.Covers(dot));
  const bool alone = std::all_of(record.versions.begin(), record.versions.end(),
                                 [&](const Version& version) { return version.dot == dot; });
  CausalContext after;
  if (alone) {
    after.seen = record.seen;
    return after;
  }
  // An own dot of `before` needs no place: whoever has this write has the vector that covers the earlier one.
  if (before != nullptr) after.seen = before->seen;
  after.has_own = true;
  after.own = dot;
  return after;
}

std::vector<const Version*> VisibleVersions(const Record& record, uint64_t now_ms) {
  std::vector<const Version*> visible;
  visible.reserve(record.versions.size());
  for (const Version& version : record.versions) {
    if (version.expires_ms != 0 && version.expires_ms <= now_ms) continue;
    const bool twin = !version.write_id.empty() &&
                      std::any_of(visible.begin(), visible.end(),
                                  [&](const Version* other) { return other->write_id == version.write_id; });
    if (!twin) visible.push_back(&version);
  }
  return visible;
}

}  // namespace gyre
