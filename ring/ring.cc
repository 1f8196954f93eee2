// Building the ring, and looking up in it.
#include "ring/ring.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <utility>

namespace gyre {
namespace {

absl::Status Invalid(const std::string& sentence) { return absl::InvalidArgumentError(sentence); }

// REQUIRES: `members` is ordered by id.
absl::Status Check(std::span<const Member> members) {
  if (members.empty()) return Invalid("A ring needs at least one member, but was given none; add a node.");
  if (members.size() > Ring::kMembersMax) {
    return Invalid("A ring has at most " + std::to_string(Ring::kMembersMax) + " members, but was given " +
                   std::to_string(members.size()) + "; remove some.");
  }
  if (!members.front().id) return Invalid("A member has the id 0, which names no node; give it another.");
  size_t tokens = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    const std::string name = "Member " + ToString(member.id);
    if (i > 0 && members[i - 1].id == member.id) {
      return Invalid(name + " is listed twice; list each member once.");
    }
    if (member.tokens.size() > Ring::kTokensPerMemberMax) {
      return Invalid(name + " has " + std::to_string(member.tokens.size()) + " tokens; give it at most " +
                     std::to_string(Ring::kTokensPerMemberMax) + ".");
    }
    const auto not_ascending = [](Token a, Token b) { return a >= b; };
    if (std::ranges::adjacent_find(member.tokens, not_ascending) != member.tokens.end()) {
      return Invalid(name + " has tokens out of order or repeated; sort them and keep each once.");
    }
    tokens += member.tokens.size();
  }
  if (tokens == 0) return Invalid("No member of the ring has a token; give at least one member tokens.");
  if (tokens > Ring::kTokensMax) {
    return Invalid("The members of the ring have " + std::to_string(tokens) +
                   " tokens together; give them at most " + std::to_string(Ring::kTokensMax) + ".");
  }
  return absl::OkStatus();
}

// The place of one token of one member. Equal tokens: the smaller id, hence the smaller index, comes first.
struct Place {
  Token token;
  MemberIndex member;
  auto operator<=>(const Place&) const = default;
};

std::vector<Place> PlacesOf(std::span<const Member> members) {
  std::vector<Place> places;
  for (size_t i = 0; i < members.size(); ++i) {
    for (const Token token : members[i].tokens) places.push_back({token, static_cast<MemberIndex>(i)});
  }
  std::ranges::sort(places);
  return places;
}

// The few most recently met of many, the latest first.
class Recent {
 public:
  void Meet(uint16_t item) {
    auto* const found = std::find(items_.data(), items_.data() + size_, item);
    auto* last = found;
    if (found == items_.data() + size_) {
      if (size_ < items_.size()) ++size_;
      last = items_.data() + size_ - 1;  // a newcomer to a full list pushes the oldest out
    }
    std::move_backward(items_.data(), last, last + 1);
    items_[0] = item;
  }
  std::span<const uint16_t> items() const { return {items_.data(), size_}; }

 private:
  std::array<uint16_t, Ring::kPreferencesMax> items_{};
  size_t size_ = 0;
};

// Steps anticlockwise from place to place; what it met last is what a clockwise walk from there meets first.
// So each preference list costs the same few steps, however far away the only member of a rare zone is.
class Walk {
 public:
  explicit Walk(std::span<const Member> members) : met_(members.size()) {
    std::map<std::string_view, uint16_t> zones;
    for (const Member& member : members) {
      zone_of_.push_back(zones.try_emplace(member.zone, static_cast<uint16_t>(zones.size())).first->second);
    }
    members_of_.resize(zones.size());
  }

  void StepTo(MemberIndex member) {
    met_[member] = ++steps_;
    zones_.Meet(zone_of_[member]);
    members_of_[zone_of_[member]].Meet(member);
  }

  // Writes the preference list from here. Round r takes the r-th member of each zone, in the order a
  // clockwise walk meets them; zones beyond the nearest kPreferencesMax cannot matter, because the first
  // round fills the row.
  void WriteRow(std::span<MemberIndex> row) const {
    size_t filled = 0;
    for (size_t round = 0; filled < row.size(); ++round) {
      std::array<MemberIndex, Ring::kPreferencesMax> picks;
      size_t count = 0;
      for (const uint16_t zone : zones_.items()) {
        const auto nearest = members_of_[zone].items();
        if (round < nearest.size()) picks[count++] = nearest[round];
      }
      assert(count > 0);
      std::sort(picks.begin(), picks.begin() + count,
                [this](MemberIndex a, MemberIndex b) { return met_[a] > met_[b]; });
      count = std::min(count, row.size() - filled);
      std::copy_n(picks.begin(), count, row.begin() + filled);
      filled += count;
    }
  }

 private:
  std::vector<uint16_t> zone_of_;   // by member
  std::vector<uint64_t> met_;       // by member: the step at which it was last met
  std::vector<Recent> members_of_;  // by zone
  Recent zones_;
  uint64_t steps_ = 0;
};

}  // namespace

absl::StatusOr<Ring> Ring::Build(std::vector<Member> members) {
  std::ranges::sort(members, {}, &Member::id);
  if (absl::Status status = Check(members); !status.ok()) return status;

  Ring ring;
  ring.members_ = std::move(members);
  const std::vector<Place> places = PlacesOf(ring.members_);
  for (const Place& place : places) {
    if (ring.ends_.empty() || ring.ends_.back() != place.token.value) ring.ends_.push_back(place.token.value);
  }
  const auto holds_tokens = [](const Member& member) { return !member.tokens.empty(); };
  const size_t holders = std::ranges::count_if(ring.members_, holds_tokens);
  ring.stride_ = std::min(holders, kPreferencesMax);
  ring.preferences_.resize(ring.ends_.size() * ring.stride_);

  Walk walk(ring.members_);
  for (size_t i = places.size(); i-- > 0;) walk.StepTo(places[i].member);  // once round, to have met everyone
  size_t arc = ring.ends_.size();
  for (size_t i = places.size(); i-- > 0;) {
    walk.StepTo(places[i].member);
    const bool first_of_token = i == 0 || places[i - 1].token != places[i].token;
    if (!first_of_token) continue;
    --arc;
    walk.WriteRow(std::span(ring.preferences_).subspan(arc * ring.stride_, ring.stride_));
  }
  assert(arc == 0);
  return ring;
}

int Ring::IndexOf(NodeId id) const {
  const auto found = std::ranges::lower_bound(members_, id, {}, &Member::id);
  if (found == members_.end() || found->id != id) return -1;
  return static_cast<int>(found - members_.begin());
}

size_t Ring::ArcOf(Token token) const {
  const auto found = std::ranges::lower_bound(ends_, token.value);
  return found == ends_.end() ? 0 : static_cast<size_t>(found - ends_.begin());
}

std::span<const MemberIndex> Ring::PreferencesOfArc(size_t arc) const {
  assert(arc < arc_count());
  return std::span(preferences_).subspan(arc * stride_, stride_);
}

std::span<const MemberIndex> Ring::PrimariesOfArc(size_t arc, size_t replicas) const {
  assert(replicas >= 1);
  assert(replicas <= kPreferencesMax);
  return PreferencesOfArc(arc).first(std::min(replicas, stride_));
}

}  // namespace gyre
