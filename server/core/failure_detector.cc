// The failure detector.
#include "server/core/failure_detector.h"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

namespace gyre {
namespace {

// The later beat is the stronger word; of equal ones the suspicion is.
bool IsNews(const control::Beat& said, const control::Beat& known) {
  return std::tie(said.generation, said.heartbeat, said.suspect) >
         std::tie(known.generation, known.heartbeat, known.suspect);
}

}  // namespace

void FailureDetector::Watch(Micros now, std::span<const Member> members) {
  assert(std::ranges::is_sorted(members, {}, &Member::id));
  std::vector<Watched> next;
  for (const Member& member : members) {
    if (member.id == self_) continue;
    const Watched* const known = Find(member.id);
    next.push_back(known != nullptr ? *known : Watched{{.node = member.id}, now});
  }
  watched_ = std::move(next);
}

void FailureDetector::Heard(Micros now, const control::Beat& beat) {
  const Watched* const found = Find(beat.node);
  if (found == nullptr || !IsNews(beat, found->beat)) return;
  watched_[static_cast<size_t>(found - watched_.data())] = {beat, now};
}

FailureDetector::Round FailureDetector::NextRound(Micros now) {
  const Micros since = round_at_ ? now - *round_at_ : Micros{};
  assert(since >= Micros{});
  round_at_ = now;
  const bool paused = since > kPausedAfter;
  std::vector<NodeId> trusted;
  std::vector<NodeId> suspects;
  for (Watched& watched : watched_) {
    control::Beat& beat = watched.beat;
    if (paused && !beat.suspect) watched.heard_at = now;
    beat.suspect = beat.suspect || now - watched.heard_at >= kSuspectAfter;
    (beat.suspect ? suspects : trusted).push_back(beat.node);
  }
  Round round = {.tell = {}, .paused = paused ? std::optional(since) : std::nullopt};
  for (int i = 0; i < kFanout && !trusted.empty(); ++i) {
    std::swap(trusted[Random(trusted.size())], trusted.back());
    round.tell.push_back(trusted.back());
    trusted.pop_back();
  }
  if (!suspects.empty()) round.tell.push_back(suspects[Random(suspects.size())]);
  return round;
}

bool FailureDetector::Suspects(NodeId node) const {
  const Watched* const watched = Find(node);
  return watched != nullptr && watched->beat.suspect;
}

std::vector<NodeId> FailureDetector::suspects() const {
  std::vector<NodeId> suspects;
  for (const Watched& watched : watched_) {
    if (watched.beat.suspect) suspects.push_back(watched.beat.node);
  }
  return suspects;
}

std::vector<control::Beat> FailureDetector::beats() const {
  std::vector<control::Beat> beats;
  beats.reserve(watched_.size());
  for (const Watched& watched : watched_) beats.push_back(watched.beat);
  return beats;
}

const FailureDetector::Watched* FailureDetector::Find(NodeId node) const {
  const auto id = [](const Watched& watched) { return watched.beat.node; };
  const auto found = std::ranges::lower_bound(watched_, node, {}, id);
  return found != watched_.end() && found->beat.node == node ? &*found : nullptr;
}

// SplitMix64.
size_t FailureDetector::Random(size_t below) {
  uint64_t z = random_state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<size_t>((z ^ (z >> 31)) % below);
}

}  // namespace gyre
